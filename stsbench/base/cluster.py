"""A Ray cluster that runs, or one on this machine."""

from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.extras import require


def connected(address: str | None = None) -> Any:
    """Connect to a cluster and return the library.

    Args:
        address: of the cluster; None for the one that `RAY_ADDRESS` names or that runs here, or a new one here.

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
