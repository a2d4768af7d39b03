cat >data.json <<'JSON'
{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"id": 1}, {"id": 2}]}
JSON
grep -o '"id": [0-9]*' data.json | cut -d: -f2 | paste -sd+ | bc
rm data.json
