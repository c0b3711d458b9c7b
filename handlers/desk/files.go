package desk

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"quittance/ledger"
	"quittance/ledger/desk"
	"quittance/reconcile/effects"
	"quittance/web"
)

// fileTypes are what may be kept, told by the content and not by what the browser says.
var fileTypes = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "application/pdf": "pdf"}

// addFile keeps a photo or PDF with an effect and writes its digest into the record.
func (d *Desk) addFile(r *request) error {
	s, err := d.subject(r)
	if err != nil {
		return err
	}
	f := r.form.File
	if f == nil {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: "No file was chosen."}
	}
	kind, _, _ := mime.ParseMediaType(http.DetectContentType(f.Content))
	if fileTypes[kind] == "" {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: "The file is neither PNG, JPEG, WebP nor PDF."}
	}
	digest := sha256.Sum256(f.Content)
	a := desk.Attachment{
		ID: uuid.NewString(), Effect: s.EffectID, Person: r.session.Person.ID, Name: fileName(f.Name, kind), Type: kind,
		Size: int64(len(f.Content)), Digest: digest[:], Content: f.Content,
	}
	// The file first: evidence that names a file which is not there would be worse than a
	// file that nothing names.
	if err := desk.AddAttachment(r.ctx(), d.db, a); err != nil {
		return err
	}
	_, err = d.engine.AddEvidence(r.ctx(), r.person(), effects.AddEvidence{
		EffectID: s.EffectID, Seen: fmt.Sprintf("Kept %s, %s, SHA-256 %x", a.Name, bytesText(a.Size), digest),
	})
	if err != nil {
		return err
	}
	return web.Redirect(r.Context, effectURL(s.EffectID)+"?done=kept")
}

// fileName is the last part of the name that was sent, with an end that fits the type.
func fileName(sent, kind string) string {
	name := path.Base(strings.ReplaceAll(sent, `\`, "/"))
	name = strings.Map(func(c rune) rune {
		if hidden(c, 0, 0) || c == '"' || c == '/' {
			return -1
		}
		return c
	}, strings.ToValidUTF8(name, ""))
	name = strings.TrimSuffix(cutText(name, 100), "…")
	if name == "" || name == "." {
		name = "file"
	}
	if !strings.HasSuffix(strings.ToLower(name), "."+fileTypes[kind]) && !(kind == "image/jpeg" && strings.HasSuffix(strings.ToLower(name), ".jpeg")) {
		name += "." + fileTypes[kind]
	}
	return name
}

// file gives a kept file back, as a download: it never runs in the pages' origin.
func (d *Desk) file(r *request) error {
	id, err1 := uuid.Parse(r.Param("id"))
	file, err2 := uuid.Parse(r.Param("file"))
	if err1 != nil || err2 != nil {
		return echo.ErrNotFound
	}
	a, err := desk.AttachmentOf(r.ctx(), d.db, id.String(), file.String())
	if errors.Is(err, ledger.ErrNotFound) {
		return echo.ErrNotFound
	}
	if err != nil {
		return err
	}
	h := r.Response().Header()
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	return r.Blob(http.StatusOK, a.Type, a.Content)
}
