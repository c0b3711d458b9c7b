// Package migrations holds the numbered SQL that makes and changes the schema:
// forward only, never edited once landed, and each step leaves a schema on which the
// program before it still runs.
package migrations

import "embed"

// FS holds the SQL files at its root.
//
//go:embed *.sql
var FS embed.FS
