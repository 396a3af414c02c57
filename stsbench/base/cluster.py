"""Connecting to a Ray cluster."""

from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.extras import require


def connected(address: str | None = None) -> Any:
    """Connect to a Ray cluster and return the `ray` module.

    Args:
        address: the cluster's address; None for the one in `RAY_ADDRESS`, a running local one, or a new local one.

    Raises:
        UserError: if Ray is not installed, or no cluster answers.
    """
    require("ray", "--on ray")
    import ray

    if not ray.is_initialized():
        try:
            ray.init(
                address=address,
                configure_logging=False,
                log_to_driver=False,
                include_dashboard=None if address else False,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = address or "on this machine"
            raise UserError(
                f"no Ray cluster answers {where} ({str(error).splitlines()[0]}): start one with `ray start`."
            ) from error
    return ray
