package api

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"quittance/client"
	"quittance/reconcile/effects"
)

// kind is how a refusal's code reads over HTTP.
type kind struct {
	status      int
	title       string
	retryable   bool
	retryAction string
	final       bool
}

// kinds says for each code of the engine what a program can do about it. None of them
// suggests another key for what is still open.
var kinds = map[effects.Code]kind{
	effects.CodeInFlight:    {409, "Another attempt is under way", true, client.RetryPoll, false},
	effects.CodeRunPaused:   {409, "The run is paused", true, client.RetryHuman, false},
	effects.CodeRunHeld:     {409, "Another process holds the run", true, client.RetryWait, false},
	effects.CodeRunClosed:   {409, "The run is closed", false, client.RetryAbandon, true},
	effects.CodeRunOpen:     {409, "An effect of the run is open", true, client.RetryPoll, false},
	effects.CodeLeaseLost:   {409, "The lease is lost", false, client.RetryAbandon, true},
	effects.CodeConflict:    {409, "The key belongs to another request", false, client.RetryAbandon, true},
	effects.CodeCancelled:   {409, "The effect was cancelled", false, client.RetryAbandon, true},
	effects.CodeStaleFence:  {409, "The attempt is not the current one", false, client.RetryAbandon, true},
	effects.CodeDecided:     {409, "The effect is decided", false, client.RetryHuman, false},
	effects.CodeStale:       {409, "The effect moved on", false, client.RetryHuman, false},
	effects.CodeNotAllowed:  {409, "The verdict does not fit", false, client.RetryHuman, false},
	effects.CodeSecondWaits: {409, "A verdict waits for a second person", false, client.RetryHuman, false},
	effects.CodeLogBehind:   {409, "The log is behind", true, client.RetryHuman, false},
	effects.CodeLookupOver:  {409, "The question is over", false, client.RetryAbandon, true},
	effects.CodeUnsigned:    {401, "Not signed", false, client.RetryAbandon, false},
	effects.CodeDamaged:     {409, "No checkpoint is what was saved", false, client.RetryHuman, false},
	effects.CodeNotFound:    {404, "Not found", false, client.RetryAbandon, false},
	effects.CodeForbidden:   {403, "Not allowed", false, client.RetryHuman, false},
	effects.CodeTooLarge:    {413, "Too large", false, "", false},
	effects.CodeInvalid:     {422, "Not acceptable", false, "", false},
	effects.CodeNoteMissing: {422, "A note is missing", false, client.RetryHuman, false},
	effects.CodeNoLookup:    {501, "The tool has no look-up", false, client.RetryHuman, false},
}

// refusal is an engine's refusal on its way to [web.Document].
type refusal struct{ *client.Problem }

// Document implements [web.Document].
func (r refusal) Document() (int, int, any) { return r.Status, r.RetryAfter, r.Problem }

// refused gives a refusal of the engine its document; other errors pass.
func (a *API) refused(err error) error {
	if r, ok := errors.AsType[*effects.Refusal](err); ok {
		return refusal{a.problem(r)}
	}
	return err
}

// problem is the document of a refusal. A code that the table does not know is the
// server's own mistake, and says so.
func (a *API) problem(r *effects.Refusal) *client.Problem {
	k, known := kinds[r.Code]
	if !known {
		k = kind{http.StatusInternalServerError, "Refused without a known reason", false, client.RetryHuman, false}
	}
	p := &client.Problem{
		Title: k.title, Status: k.status, Detail: r.Detail, Code: string(r.Code), Reason: r.Reason,
		Retryable: k.retryable, RetryAction: k.retryAction, Final: k.final,
		RetryAfter: wholeSeconds(r.RetryAfter), Poll: poll(r),
		RunID: r.RunID, EffectID: r.EffectID, State: r.State, Version: r.Version,
		WaitingFor: a.waitingWire(r.WaitingFor), LogPosition: r.LogPosition,
	}
	if r.HeldBy != "" {
		p.HeldBy = &client.HeldBy{Worker: r.HeldBy}
	}
	if d := r.Decided; d != nil {
		p.Decided = &client.Decided{By: d.By, Who: d.Person, When: moment(d.At), Verdict: d.Verdict, Why: d.Note}
	}
	if r.Pointer != "" {
		p.Errors = []client.FieldError{{Pointer: r.Pointer, Detail: r.Detail}}
	}
	return p
}

// within moves a problem's pointers to where its part stands in a list.
func within(p *client.Problem, at string) *client.Problem {
	for i := range p.Errors {
		p.Errors[i].Pointer = at + p.Errors[i].Pointer
	}
	return p
}

// wholeSeconds rounds up: earlier would be too early.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// poll is where the state that stands in the way can be asked for.
func poll(r *effects.Refusal) string {
	switch r.Code {
	case effects.CodeInFlight:
		return "/v1/effects/" + url.PathEscape(r.EffectID)
	case effects.CodeRunPaused, effects.CodeRunHeld, effects.CodeRunOpen:
		if r.RunID != "" {
			return "/v1/runs/" + url.PathEscape(r.RunID) + "?wait=30s"
		}
	}
	return ""
}
