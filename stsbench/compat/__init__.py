"""Other tools' interfaces on top of stsbench's rooms, so that existing scripts run unchanged."""
