package effects

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"

	"quittance/ledger/logfiles"
)

// freshSpan is a span that was not read before.
type freshSpan struct {
	span *LogSpan
	line int
}

// fresh finds the spans that are new to the account, and notes all of them as read.
func (l *logReading) fresh(ctx context.Context) (list []freshSpan, err error) {
	digests := make([][]byte, len(l.in.Spans))
	for i := range l.in.Spans {
		digests[i] = l.e.lineDigest(l.in.Spans[i].Raw)
	}
	before, err := logfiles.Before(ctx, l.tx, l.log.ID, l.log.Generation, digests)
	if err != nil {
		return nil, err
	}
	most, err := logfiles.Most(ctx, l.tx, l.log.Account, digests)
	if err != nil {
		return nil, err
	}
	ours, err := l.ours(ctx)
	if err != nil {
		return nil, err
	}
	var whole []int64
	for i := range l.in.Spans {
		s := &l.in.Spans[i]
		d := string(digests[i])
		if s.Torn {
			news, err := l.quarantine(ctx, s)
			if err != nil {
				return nil, err
			}
			if news {
				list = append(list, freshSpan{s, -1})
			}
			continue
		}
		whole = append(whole, s.Start)
		before[d]++
		row := logfiles.Line{Part: l.in.After.ID, Start: s.Start, Number: s.First, Log: l.log.ID, Generation: l.log.Generation,
			Account: l.log.Account, Digest: digests[i], Ordinal: before[d], Repeat: before[d] <= most[d]}
		most[d] = max(most[d], before[d])
		l.lines = append(l.lines, row)
		if s.Record != nil && ours[s.Record.ID] {
			l.report.Ours++
			continue
		}
		if !row.Repeat {
			list = append(list, freshSpan{s, len(l.lines) - 1})
		}
		if s.Record == nil {
			if _, err := l.quarantine(ctx, s); err != nil {
				return nil, err
			}
			continue
		}
		if row.Repeat {
			l.report.Repeats++
		} else {
			l.report.New++
		}
	}
	return list, logfiles.Heal(ctx, l.tx, l.in.After.ID, whole)
}

// ours are the ids of the resolved lines that were appended from here: read back, they
// are on the disk, and they say nothing that is not on record.
func (l *logReading) ours(ctx context.Context) (map[string]bool, error) {
	var ids []string
	for i := range l.in.Spans {
		if r := l.in.Spans[i].Record; r != nil && r.ID != "" {
			ids = append(ids, r.ID)
		}
	}
	return logfiles.Appended(ctx, l.tx, l.log.ID, l.in.After.ID, ids)
}

// lineDigest names a line's wording, under a key: of a line that is known but for a
// short secret in it, a plain digest would give the secret away.
func (e *Engine) lineDigest(raw []byte) []byte {
	m := hmac.New(sha256.New, e.secrets.Redaction)
	m.Write([]byte("line of a log file\x00"))
	m.Write(raw)
	return m.Sum(nil)[:16]
}

// excerptLimit is how much of a damaged span is kept.
const excerptLimit = 4 << 10

// quarantine keeps a span that is not used, and says so.
func (l *logReading) quarantine(ctx context.Context, s *LogSpan) (news bool, err error) {
	l.report.Damaged++
	if s.Torn {
		l.report.Torn++
	}
	l.report.problem(s.note(s.Problem))
	sum := sha256.New()
	sum.Write(l.e.lineDigest(s.Raw))
	return logfiles.AddDamage(ctx, l.tx, logfiles.Damage{
		Part: l.in.After.ID, Start: s.Start, Size: s.Size, FirstLine: s.First, LastLine: s.Last, Reason: s.Problem,
		Excerpt: l.e.excerpt(s.Raw), Digest: sum.Sum(nil), Torn: s.Torn,
	})
}

// excerpt is the beginning of bytes of any kind, as they are kept for people.
func (e *Engine) excerpt(raw []byte) string {
	return cut(e.words(cut(string(raw), 2*excerptLimit)), excerptLimit)
}
