"""Where jobs run: processes on this machine, tasks of a Ray cluster, an array job of Slurm."""
