package client

import "sync"

// occurrences tells "again" from "twice" within a run: the n-th identical call that
// came back with an outcome used up n. A call that did not come back gives its number
// free again, so that the next identical call is the same one.
type occurrences struct {
	mu     sync.Mutex
	calls  map[string]*identical // by CallDigest
	byCall map[string]int        // digest and call id -> its occurrence
}

// identical is what is known of the calls with one digest. Numbers start at 1.
type identical struct {
	done    map[int]bool   // came back
	busy    map[int]int    // how many perform it now
	attempt map[int]string // the attempt id of a begin that got no answer
}

// turn is the right to make one call under one occurrence.
type turn struct {
	all        *occurrences
	digest     string
	occurrence int
	attemptID  string
}

func newOccurrences(saved map[string]int) *occurrences {
	o := &occurrences{calls: map[string]*identical{}, byCall: map[string]int{}}
	for digest, n := range saved {
		same := o.same(digest)
		for i := 1; i <= n; i++ {
			same.done[i] = true
		}
	}
	return o
}

func (o *occurrences) same(digest string) *identical {
	same := o.calls[digest]
	if same == nil {
		same = &identical{done: map[int]bool{}, busy: map[int]int{}, attempt: map[int]string{}}
		o.calls[digest] = same
	}
	return same
}

// take gives the lowest number that is neither used up nor being performed, or,
// where callID was seen with this digest before, the number it had then.
func (o *occurrences) take(digest, callID string) *turn {
	o.mu.Lock()
	defer o.mu.Unlock()
	same := o.same(digest)
	n, again := 0, false
	if callID != "" {
		n, again = o.byCall[digest+callID]
	}
	if !again {
		for n = 1; same.done[n] || same.busy[n] > 0; {
			n++
		}
		if callID != "" {
			o.byCall[digest+callID] = n
		}
	}
	same.busy[n]++
	t := &turn{all: o, digest: digest, occurrence: n, attemptID: same.attempt[n]}
	if t.attemptID == "" {
		t.attemptID = newID()
	}
	return t
}

// unanswered keeps the attempt id for the next identical call: the begin may have
// arrived, and only the same id can be told its answer.
func (t *turn) unanswered() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.all.same(t.digest).attempt[t.occurrence] = t.attemptID
}

// answered forgets the attempt id: the next begin of this occurrence is another try.
func (t *turn) answered() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	delete(t.all.same(t.digest).attempt, t.occurrence)
}

// end gives the number back, used up when the call came back with an outcome.
func (t *turn) end(cameBack bool) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	same := t.all.same(t.digest)
	same.busy[t.occurrence]--
	if cameBack {
		same.done[t.occurrence] = true
	}
}

// counts is what a checkpoint saves: how many came back, up to the first that did
// not, so that a resumed run makes that one again first.
func (o *occurrences) counts() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := map[string]int{}
	for digest, same := range o.calls {
		n := 0
		for same.done[n+1] {
			n++
		}
		if n > 0 {
			counts[digest] = n
		}
	}
	return counts
}
