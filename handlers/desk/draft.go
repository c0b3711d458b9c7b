package desk

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"quittance/ledger/desk"
	"quittance/web"
)

// draft is what somebody typed about an effect and has not sent, with the version they
// were looking at.
type draft struct {
	Version   int64  `json:"version"`
	Verdict   string `json:"verdict,omitempty"`
	Note      string `json:"note,omitempty"`
	Reference string `json:"reference,omitempty"`
	Result    string `json:"result,omitempty"`
	SameAs    string `json:"same_as,omitempty"`
	NextLook  string `json:"next_look,omitempty"`
	// Record is the record that was found which "taken" means, [noRecord] for none of them.
	Record  string   `json:"record,omitempty"`
	NotOurs []string `json:"not_ours,omitempty"`

	savedAt time.Time
}

func draftOf(f *web.Form) draft {
	return draft{
		Version: f.Whole("version"), Verdict: f.Text("verdict"), Note: f.Text("note"), Reference: f.Text("reference"),
		Result: f.Text("result"), SameAs: f.Text("same_as"), NextLook: f.Text("next_look"),
		Record: f.Text("record"), NotOurs: f.All("not_ours"),
	}
}

func (d *Desk) readDraft(ctx context.Context, effect string, person int64) (*draft, error) {
	row, err := desk.DraftOf(ctx, d.db, effect, person)
	if err != nil || row == nil {
		return nil, err
	}
	t := draft{savedAt: row.SavedAt}
	if json.Unmarshal([]byte(row.Form), &t) != nil {
		return nil, nil // of an older program
	}
	return &t, nil
}

// keepDraft stores what the form holds for the person of the session, and nobody else.
func (d *Desk) keepDraft(r *request) error {
	id, err := uuid.Parse(r.Param("id"))
	if err != nil {
		return nil // no such effect: nothing to keep
	}
	return d.keepThis(r, id.String(), draftOf(r.form))
}

func (d *Desk) keepThis(r *request, effect string, t draft) error {
	if len(t.Note) > 20_000 {
		t.Note = t.Note[:20_000]
	}
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return desk.SaveDraft(r.ctx(), d.db, effect, r.session.Person.ID, string(b))
}

// saveDraft is what the page's module sends while somebody types.
func (d *Desk) saveDraft(r *request) error {
	s, err := d.subject(r) // an effect that does not exist has no drafts
	if err != nil {
		return err
	}
	if err := d.keepThis(r, s.EffectID, draftOf(r.form)); err != nil {
		return err
	}
	return r.NoContent(http.StatusNoContent)
}
