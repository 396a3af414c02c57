"""Interfaces of other tools, implemented with stsbench, so that existing scripts run unchanged."""
