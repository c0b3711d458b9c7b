package seal

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quittance/ledger"
	store "quittance/ledger/seal"
)

// foldPage is how many effects one statement reads.
const foldPage = 500

// lostShown bounds how many effects without a row are named.
const lostShown = 100

// checkFold compares each effect with its part of the log. An event carries every
// changing column as it was after it, so the last of a log without holes is the row.
func checkFold(ctx context.Context, db *ledger.DB, found func(store.Damage) error) (looked int64, err error) {
	for after := "00000000-0000-0000-0000-000000000000"; ; {
		list, err := store.Fold(ctx, db, after, foldPage)
		if err != nil {
			return looked, err
		}
		for _, f := range list {
			wrong, err := fold(f)
			if err != nil {
				return looked, err
			}
			if len(wrong) > 0 {
				if err := found(store.Damage{What: "effect " + f.ID + ": " + strings.Join(wrong, "; ")}); err != nil {
					return looked, err
				}
			}
		}
		looked += int64(len(list))
		if len(list) < foldPage {
			break
		}
		after = list[len(list)-1].ID
	}
	lost, err := store.Lost(ctx, db, lostShown)
	if err != nil {
		return looked, err
	}
	for _, id := range lost {
		if err := found(store.Damage{What: "effect " + id + ": the log speaks of it, and its row is gone"}); err != nil {
			return looked, err
		}
	}
	return looked, nil
}

// fold says where an effect's row and its log differ.
func fold(f store.Folded) (wrong []string, err error) {
	if f.Events == 0 {
		return []string{"it has no log"}, nil
	}
	if f.Lowest != 1 || f.Highest != f.Events {
		wrong = append(wrong, fmt.Sprintf("its log holds %d events from version %d to %d", f.Events, f.Lowest, f.Highest))
	}
	row, err := facts(f.Standing)
	if err != nil {
		return nil, err
	}
	last, err := facts(f.Last)
	if err != nil {
		return append(wrong, "its last event cannot be read"), nil
	}
	first, err := facts(f.First)
	if err != nil {
		return append(wrong, "its first event cannot be read"), nil
	}
	if first["arguments_digest"] != f.Arguments {
		wrong = append(wrong, "its arguments are not those that its first event names")
	}
	if f.Result != nil && row["result_digest"] != "" && row["result_digest"] != fmt.Sprintf(`\x%x`, []byte(f.Result)) {
		wrong = append(wrong, "its result is not the one whose digest it carries")
	}
	if n := row["attempts"]; n != fmt.Sprint(f.Attempts) && (n != "" || f.Attempts != 0) {
		wrong = append(wrong, fmt.Sprintf("it counts %s attempts, and %d are stored", n, f.Attempts))
	}
	for _, k := range slices.Sorted(maps.Keys(row)) {
		if row[k] != last[k] {
			wrong = append(wrong, fmt.Sprintf("%s is %q in the row and %q in the log", k, row[k], last[k]))
		}
		delete(last, k)
	}
	delete(last, "cause")
	delete(last, "arguments_digest")
	for _, k := range slices.Sorted(maps.Keys(last)) {
		wrong = append(wrong, fmt.Sprintf("%s is missing in the row and %q in the log", k, last[k]))
	}
	return wrong, nil
}

// facts reads a flat JSON object as texts; what is false, 0 or null is left out, as
// events leave it out.
func facts(text string) (map[string]string, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, fmt.Errorf("couldn't read an event: %w", err)
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		switch s := string(v); s {
		case "null", "false", "0":
		default:
			if s[0] == '"' {
				if err := json.Unmarshal(v, &s); err != nil {
					return nil, fmt.Errorf("couldn't read an event: %w", err)
				}
			}
			out[k] = s
		}
	}
	return out, nil
}
