package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"

	"quittance/ledger/embedded"
	"quittance/reconcile/seal"
)

// noAnchor is the value of --anchor that keeps none.
const noAnchor = "off"

// plainName is a name of a place that can stand in a file's name as it is.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// anchor is the file of the anchor. In the data folder it stands beside the embedded
// database, or, for a database of somebody else's, under the name of its place: an empty
// database in the place of the lost one has to meet the same file.
func (f anchorFlag) anchor(env environment, data dataFlag) (*seal.Anchor, error) {
	switch f.Anchor {
	case noAnchor:
		return seal.NewAnchor(""), nil
	case "":
	default:
		path, err := filepath.Abs(f.Anchor)
		if err != nil {
			return nil, fmt.Errorf("couldn't resolve --anchor: %w", err)
		}
		return seal.NewAnchor(path), nil
	}
	dir := data.Data
	if dir == "" {
		var err error
		if dir, err = embedded.DefaultDir(); err != nil {
			return nil, err
		}
	}
	if env.DatabaseURL == "" {
		return seal.NewAnchor(filepath.Join(dir, embedded.AnchorName)), nil
	}
	place := env.Place
	if !plainName.MatchString(place) {
		place = fmt.Sprintf("%x", sha256.Sum256([]byte(place)))[:16]
	}
	return seal.NewAnchor(filepath.Join(dir, "anchor-"+place+".json")), nil
}
