package web

import (
	"bytes"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

func readForm(t *testing.T, kind, body string) (*Form, error) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	return ReadForm(echo.New().NewContext(r, httptest.NewRecorder()))
}

func TestReadForm(t *testing.T) {
	t.Parallel()
	f, err := readForm(t, "application/x-www-form-urlencoded", "note=+two%0D%0Alines+&version=7&role=a&role=b&password=+x+")
	if err != nil {
		t.Fatal(err)
	}
	if f.Text("note") != "two\nlines" || f.Whole("version") != 7 || len(f.All("role")) != 2 || f.Raw("password") != " x " || f.Has("other") {
		t.Errorf("%+v", f)
	}
	for name, tc := range map[string]struct {
		kind, body string
		want       int
	}{
		"json":       {"application/json", `{}`, 415},
		"plain text": {"text/plain", "a=b", 415},
		"no type":    {"", "a=b", 415},
		"not UTF-8":  {"application/x-www-form-urlencoded", "note=%ff", 400},
		"NUL":        {"application/x-www-form-urlencoded", "note=a%00b", 400},
		"broken":     {"application/x-www-form-urlencoded", "note=%zz", 400},
		"too large":  {"application/x-www-form-urlencoded", "note=" + strings.Repeat("x", FormLimit), 413},
		"cut":        {"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhalf", 400},
	} {
		_, err := readForm(t, tc.kind, tc.body)
		p, ok := errors.AsType[*Problem](err)
		if !ok || p.Status != tc.want {
			t.Errorf("%s: %v, want %d", name, err, tc.want)
		}
	}
}

func TestReadFormWithAFile(t *testing.T) {
	t.Parallel()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	if err := m.WriteField("form", "token"); err != nil {
		t.Fatal(err)
	}
	part, err := m.CreateFormFile("file", "photo.png")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write([]byte("\x00\xffbytes"))
	_ = m.Close()
	f, err := readForm(t, m.FormDataContentType(), body.String())
	if err != nil || f.Text("form") != "token" || f.File == nil || f.File.Name != "photo.png" || string(f.File.Content) != "\x00\xffbytes" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestStaticFilesAreKeptForEverUnderTheirVersion(t *testing.T) {
	t.Parallel()
	e := echo.New()
	RegisterStatic(e)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	for name, kind := range map[string]string{"desk.css": "text/css", "desk.js": "text/javascript", "inter.woff2": "font/woff2", "mark.svg": "image/svg+xml"} {
		w := get(Assets() + name)
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	if w := get("/static/old/desk.css"); w.Code != 200 || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("an old version is kept: %v", w.Header())
	}
	for _, path := range []string{"/static/x/static.go", "/static/x/..%2F..%2Fgo.mod", "/static/x/none"} {
		if w := get(path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
