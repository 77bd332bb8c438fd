"""Whether a value keeps a schema: as AOD says, over the capsule API, or by aod.judge where there is none."""

import os

from aod import api, schema
from aod.errors import AgentError, ContractError, HandoffRefused


def by(document, stage, name, whole=False):
    """Return what judges values by one half of a document, or of a schema.json (whole).

    Files aren't looked for. A schema that can't be used is an AgentError, at the latest with
    the first value.
    """
    if os.environ.get("AOD_VALIDATES") == "1":
        return _Asked({"schema": document, "side": stage} if whole else {"schema": document[stage]}, name)
    try:
        return schema.Half(document, stage, lambda _name: None, name)
    except ContractError as error:
        raise AgentError("setup", str(error)) from None


def told(finding):
    """Return a finding of AOD's as a line."""
    if not isinstance(finding, dict):
        return str(finding)
    text = ": ".join(str(finding[key]) for key in ("pointer", "message") if finding.get(key))
    return f"{text} ({finding['hint']})" if finding.get("hint") else text


class _Asked:
    def __init__(self, request, name):
        self._request = request
        self._name = name

    def problems(self, value):
        """List all that breaks the contract, each beginning with where."""
        try:
            _, answer = api.request("POST", "/validate", {**self._request, "value": value})
        except HandoffRefused as refused:
            if refused.status in (400, 413):
                return [f"{self._name}: {refused}"]
            raise AgentError("setup", "; ".join([str(refused), *map(told, refused.findings)])) from None
        except ValueError as error:  # such as NaN
            return [f"{self._name} has no JSON form: {error}"]
        found = [finding for finding in answer.get("findings") or () if isinstance(finding, dict)]
        wrong = [told({**finding, "pointer": self._name + api.text(finding, "pointer")}) for finding in found]
        return wrong or ([] if answer.get("valid") is True else [f"{self._name} breaks its contract"])
