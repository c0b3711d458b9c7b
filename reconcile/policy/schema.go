package policy

import _ "embed"

// Schema is the JSON Schema (2020-12) of a policy, for editors. It knows the fields and
// their kinds; that a policy is right only [Load] can say.
//
//go:embed schema.json
var Schema []byte
