"""Whether a JSON value is what openapi.json says, for the keywords it uses."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name != "boolean":
        return False
    return isinstance(value, _TYPES[name])


def response_schema(
    document: dict[str, Any], method: str, path: str, status: int
) -> dict[str, Any] | None:
    """The schema of the JSON answer; None if it has none. Raises LookupError for an answer that
    is not described."""
    for pattern, item in document["paths"].items():
        if re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", pattern), path) and method in item:
            response = item[method]["responses"][str(status)]
            response = resolve(document, response["$ref"]) if "$ref" in response else response
            return response.get("content", {}).get("application/json", {}).get("schema")
    raise LookupError(f"{method} {path} is not described")


def resolve(document: dict[str, Any], reference: str) -> Any:
    found: Any = document
    for key in reference.removeprefix("#/").split("/"):
        found = found[key]
    return found


def violations(
    document: dict[str, Any], schema: dict[str, Any], value: Any, place: str = "$"
) -> list[str]:
    """Where and how `value` breaks the schema."""
    found: list[str] = []
    if "$ref" in schema:
        found += violations(document, resolve(document, schema["$ref"]), value, place)
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_has_type(value, name) for name in types):
            return [*found, f"{place}: {type(value).__name__} is not {types}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place}: {value!r} is not one of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{place}: {value!r} is not {schema['const']!r}")
    for part in schema.get("allOf", []):
        found += violations(document, part, value, place)
    for keyword in ("anyOf", "oneOf"):
        parts = schema.get(keyword)
        if parts and all(violations(document, part, value, place) for part in parts):
            found.append(f"{place}: none of {keyword} fits")
    if isinstance(value, dict):
        found += _object_violations(document, schema, value, place)
    if isinstance(value, list) and "items" in schema:
        for i, element in enumerate(value):
            found += violations(document, schema["items"], element, f"{place}[{i}]")
    return found


def _object_violations(
    document: dict[str, Any], schema: dict[str, Any], value: dict[str, Any], place: str
) -> list[str]:
    found = [
        f"{place}.{name} is missing" for name in schema.get("required", []) if name not in value
    ]
    properties = schema.get("properties", {})
    for name, member in value.items():
        if name in properties:
            found += violations(document, properties[name], member, f"{place}.{name}")
        elif schema.get("additionalProperties") is False:
            found.append(f"{place}.{name} is not described")
    return found
