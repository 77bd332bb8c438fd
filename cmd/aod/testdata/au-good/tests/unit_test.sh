bash unit < tests/sample.txt | cmp - tests/expected.json
