import json

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
}


def check(value):
    missing = [key for key in SCHEMA["required"] if key not in value]
    return missing or "ok"


print(json.dumps({"result": check(json.loads('{"age": 3}'))}))
