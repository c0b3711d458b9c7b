// Package python holds tests alone: they run those of the Python client beside them,
// which needs nothing of Go, and check its types.
package python
