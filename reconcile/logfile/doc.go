// Package logfile reads and writes the log that agents keep for themselves, a JSON
// object a line, as docs/effects_jsonl.md describes it. It knows lines and files; what
// a line means for an effect is decided elsewhere.
//
// Nothing is ever guessed from a damaged line: it is reported with its place, and with
// the effects that it may have named.
package logfile
