"""Whether a service without keys may be reached from where it listens."""

from __future__ import annotations

import ipaddress
import logging
import os
from collections.abc import Mapping

from deployments.guards.key_source import VARIABLE, configured
from deployments.guards.settings import GuardSettings

ALL_ADDRESSES = "0.0.0.0"
_log = logging.getLogger(__name__)
OPEN_WARNING = "no API keys are configured; whoever reaches {host} can use this service"


class ExposedError(ValueError):
    """Others could use the service, and nobody has said that they may."""


def warning(
    host: str, settings: GuardSettings, environment: Mapping[str, str] = os.environ
) -> str | None:
    """What whoever starts the service should know, or None where keys are needed.

    Raises:
        ExposedError: no keys are configured, the address is not this machine's own, and
            the settings do not say ``open``.
    """
    if configured(settings, environment):
        return None
    if not is_loopback(host) and not settings.open:
        raise ExposedError(
            f"no API keys are configured, and others may reach {host}, which is not an address "
            "of this machine alone: name a guards.keys_file (speechlm keys create), set "
            f"{VARIABLE}, listen on 127.0.0.1, or say guards.open: true"
        )
    return OPEN_WARNING.format(host=host)


def check_proxy(settings: GuardSettings) -> None:
    """Checks where Serve's own HTTP proxy listens, for a service that Serve itself started.

    Raises:
        ExposedError: as ``warning``.
    """
    from ray.serve.context import _get_global_client

    if text := warning(_get_global_client().http_config.host or ALL_ADDRESSES, settings):
        _log.warning(text)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
