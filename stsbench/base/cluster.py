"""Connecting to a Ray cluster."""

from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.extras import require


def connected(address: str | None = None) -> Any:
    """Connects to a Ray cluster and returns the `ray` module.

    Args:
        address: the cluster's address; None for the one in `RAY_ADDRESS`, a running local one, or a new local one.

    Raises:
        UserError: if Ray is not installed, or no cluster answers.
    """
    require("ray", "--on ray")
    import ray

    quiet = {"configure_logging": False, "log_to_driver": False, "include_dashboard": None if address else False}
    try:
        if not ray.is_initialized():
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(
            f"no Ray cluster answers {address or 'on this machine'} ({str(error).splitlines()[0]}): "
            "start one with `ray start`."
        ) from error
    return ray
