package desk

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
)

// Attachment is a photo or PDF kept with an effect.
type Attachment struct {
	ID      string       `db:"id"`
	Effect  string       `db:"effect_id"`
	Person  int64        `db:"person_id"`
	Name    string       `db:"name"`
	Type    string       `db:"type"`
	Size    int64        `db:"size"`
	Digest  ledger.Bytes `db:"digest"`
	At      time.Time    `db:"at"`
	By      string       `db:"person_name"`
	Content []byte       `db:"content"` // only from [AttachmentOf]
}

// AddAttachment keeps a file.
func AddAttachment(ctx context.Context, db *ledger.DB, a Attachment) error {
	return db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO attachments (id, effect_id, person_id, name, type, size, digest, content)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, a.ID, a.Effect, a.Person, a.Name, a.Type, a.Size, a.Digest, a.Content)
		if err != nil {
			return fmt.Errorf("couldn't keep an attachment: %w", err)
		}
		return nil
	})
}

const attachmentColumns = `a.id, a.effect_id, a.person_id, a.name, a.type, a.size, a.digest, a.at, p.name AS person_name`

// AttachmentsOf lists an effect's files without their content, oldest first.
func AttachmentsOf(ctx context.Context, r ledger.Reader, effect string) ([]Attachment, error) {
	var rows []Attachment
	err := r.Select(ctx, &rows, `
		SELECT `+attachmentColumns+` FROM attachments a JOIN people p ON p.id = a.person_id
		WHERE a.effect_id = $1::uuid ORDER BY a.at, a.id`, effect)
	if err != nil {
		return nil, fmt.Errorf("couldn't list attachments: %w", err)
	}
	return rows, nil
}

// AttachmentOf reads one file of an effect; [ledger.ErrNotFound].
func AttachmentOf(ctx context.Context, r ledger.Reader, effect, id string) (a Attachment, err error) {
	err = r.Get(ctx, &a, `
		SELECT `+attachmentColumns+`, a.content FROM attachments a JOIN people p ON p.id = a.person_id
		WHERE a.effect_id = $1::uuid AND a.id = $2::uuid`, effect, id)
	return a, err
}
