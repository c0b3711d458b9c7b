// Package conformance holds tests alone: one set of scenarios drives the clients of
// all languages against a real server and expects the same answers of each. README.md
// says how a runner is driven and how a scenario is written.
package conformance
