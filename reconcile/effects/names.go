package effects

import store "quittance/ledger/effects"

// The names of design section 3, as the ledger stores them.
type (
	State = store.State
	Why   = store.Why
	By    = store.By
)

const (
	None        = store.None
	InFlight    = store.InFlight
	Interrupted = store.Interrupted
	Held        = store.Held
	Cleared     = store.Cleared
	Taken       = store.Taken
	Failed      = store.Failed
	Cancelled   = store.Cancelled

	WhyNone          = store.WhyNone
	WhyDeadline      = store.WhyDeadline
	WhyLease         = store.WhyLease
	WhyUnknown       = store.WhyUnknown
	WhyReference     = store.WhyReference
	WhyLogGap        = store.WhyLogGap
	WhyKeptFinish    = store.WhyKeptFinish
	WhyHit           = store.WhyHit
	WhyContradicted  = store.WhyContradicted
	WhyKeyLife       = store.WhyKeyLife
	WhyObserved      = store.WhyObserved
	WhyOverlap       = store.WhyOverlap
	WhyNoBusinessKey = store.WhyNoBusinessKey
	WhyUndone        = store.WhyUndone
	WhyExpired       = store.WhyExpired
	WhyNotTaken      = store.WhyNotTaken
	WhyAllowed       = store.WhyAllowed
	WhySameKey       = store.WhySameKey

	ByNobody    = store.ByNobody
	ByAgent     = store.ByAgent
	ByLateAgent = store.ByLateAgent
	ByLookup    = store.ByLookup
	ByVendorKey = store.ByVendorKey
	ByPerson    = store.ByPerson
	ByRunClosed = store.ByRunClosed
)
