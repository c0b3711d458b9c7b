package web

import (
	"bytes"
	"mime"
	"net/http"
	"path"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"quittance/static"
)

// pagePolicy lets a page load our own stylesheet, modules, font and pictures, talk to
// this server, and nothing else: nothing inline runs, whatever text gets into a page.
const pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; font-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Render answers with a page. It is written whole or not at all. A person's page is for
// that person, also after they signed out and went back.
func Render(c echo.Context, status int, page templ.Component) error {
	return render(c, status, "no-store", page)
}

// RenderPrivate is Render for a page that anybody with its address may read, and that no
// cache between may keep.
func RenderPrivate(c echo.Context, status int, page templ.Component) error {
	return render(c, status, "private, no-store", page)
}

func render(c echo.Context, status int, caching string, page templ.Component) error {
	var buf bytes.Buffer
	if err := page.Render(c.Request().Context(), &buf); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Cache-Control", caching)
	return c.HTMLBlob(status, buf.Bytes())
}

// Redirect sends the browser to a page of ours after a change.
func Redirect(c echo.Context, to string) error { return c.Redirect(http.StatusSeeOther, to) }

// Assets is the path under which the static files are found.
func Assets() string { return "/static/" + static.Version + "/" }

// RegisterStatic serves the static files. A name holds the content's version, so that
// it may be kept for ever; an old version is answered with the present file, once.
func RegisterStatic(e *echo.Echo) {
	e.GET("/static/:version/:name", func(c echo.Context) error {
		name := path.Base(c.Param("name"))
		body, err := static.FS.ReadFile(name)
		if err != nil {
			return echo.ErrNotFound
		}
		h := c.Response().Header()
		h.Set("Cache-Control", "no-cache")
		if c.Param("version") == static.Version {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		kind := mime.TypeByExtension(path.Ext(name))
		if path.Ext(name) == ".woff2" {
			kind = "font/woff2" // not in every system's table
		}
		return c.Blob(http.StatusOK, kind, body)
	})
}
