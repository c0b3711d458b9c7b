// Package static holds the stylesheet, the modules and the font that pages load,
// embedded in the program and named by their content.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
)

// FS holds the files at its root.
//
//go:embed *.css *.js *.woff2 *.svg
var FS embed.FS

// Version changes with any of the files, so that browsers may keep what they have for
// ever.
var Version = version()

func version() string {
	h := sha256.New()
	_ = fs.WalkDir(FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := FS.ReadFile(path)
		h.Write([]byte(path))
		h.Write(b)
		return err
	})
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:9])
}
