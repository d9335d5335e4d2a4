from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, cast

import pytest

from dpaudit.auditing.options import OPTIONS
from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import DEFINITIONS
from dpaudit.config.schema import AUDIT_KEYS, CLAIM_KEYS, schema
from tests.specs import RECORDS, names


def test_claims_in_the_schema_are_those_of_the_registry() -> None:
    claim = schema()["$defs"]["AuditSettings"]["properties"]["claim"]
    assert claim["properties"]["definition"]["enum"] == list(DEFINITIONS)
    parameters = {
        field.name for one in DEFINITIONS.values() for field in fields(cast(Any, one))
    } | {"group"}
    assert set(claim["properties"]) == parameters | {"definition", "from", "sigma", "curve"}
    assert set(claim["properties"]) == {*CLAIM_KEYS, "name"}


@pytest.mark.parametrize("key", AUDIT_KEYS)
def test_every_key_says_what_it_must_be(key: str) -> None:
    said = schema()["$defs"]["AuditSettings"]["properties"][key]["description"]
    assert said == OPTIONS[key].must


def test_a_schema_is_plain_json_and_refuses_other_keys() -> None:
    definitions = json.loads(json.dumps(schema()))["$defs"]
    assert definitions["AuditSettings"]["additionalProperties"] is False
    assert set(definitions["AuditSettings"]["properties"]) == set(AUDIT_KEYS)
    assert definitions["ConfigurationFile"]["required"] == ["version", "audits"]


def test_every_field_of_an_audit_has_a_key() -> None:
    # Where a run is kept, and whether to go on with it, belongs to the run and not to the audit; a
    # request is what all keys together are, files are what they name, and a group is part of the
    # claim.
    others = {"target", "journal", "resume", "request", "files", "group", "grouped", "family"}
    others |= {"claimed_by", "flags", "pace"}
    own = names(AuditSpec).union(*map(names, RECORDS.values())) - others - RECORDS.keys()
    assert own <= set(AUDIT_KEYS)
