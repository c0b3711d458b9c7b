package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

// Limits of forms. The text limit leaves room for a result of 256 KiB with every byte
// escaped; the file limit is what is kept of one photo or PDF.
const (
	FormLimit = 2 << 20
	FileLimit = 10 << 20
	fileSlack = 1 << 20 // the multipart frame and the other fields
)

// Form is a parsed form. Every value is valid UTF-8 without U+0000, its line ends are
// "\n" however the browser sent them.
type Form struct {
	values url.Values
	File   *File // of a form that carries one
}

// File is an uploaded file.
type File struct {
	Name    string
	Content []byte
}

// ReadForm reads the form of a POST; a *[Problem] says what is wrong with it.
func ReadForm(c echo.Context) (*Form, error) {
	kind, params, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if err != nil {
		kind = ""
	}
	switch kind {
	case echo.MIMEApplicationForm:
		body, err := readLimited(c, FormLimit)
		if err != nil {
			return nil, err
		}
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, badForm("The form cannot be read.")
		}
		return clean(values, nil)
	case echo.MIMEMultipartForm:
		body, err := readLimited(c, FileLimit+fileSlack)
		if err != nil {
			return nil, err
		}
		return readMultipart(body, params["boundary"])
	}
	return nil, &Problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_type", Detail: "A form is expected."}
}

func readLimited(c echo.Context, limit int) ([]byte, error) {
	body, err := readBody(c, BodyLimit)
	if err == nil && len(body) > limit {
		err = &Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Limit: int64(limit),
			Detail: "That is more than " + strconv.Itoa(limit>>20) + " MB."}
	}
	return body, err
}

func readMultipart(body []byte, boundary string) (*Form, error) {
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	values := url.Values{}
	var file *File
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return clean(values, file)
		}
		if err != nil {
			return nil, badForm("The form cannot be read.")
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, badForm("The form cannot be read.")
		}
		switch {
		case part.FileName() == "" && part.Header.Get("Content-Type") == "":
			values.Add(part.FormName(), string(content))
		case len(content) > 0 && file != nil:
			return nil, badForm("One file at a time.")
		case len(content) > FileLimit:
			return nil, &Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Limit: FileLimit, Detail: "A file has at most 10 MB."}
		case len(content) > 0:
			file = &File{Name: part.FileName(), Content: content}
		}
	}
}

func clean(values url.Values, file *File) (*Form, error) {
	for name, list := range values {
		for i, v := range list {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return nil, badForm("A field holds bytes that are not text.")
			}
			list[i] = strings.ReplaceAll(v, "\r\n", "\n")
		}
		values[name] = list
	}
	return &Form{values: values, File: file}, nil
}

func badForm(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: "malformed", Detail: detail}
}

// Text is a field without the spaces around it.
func (f *Form) Text(name string) string { return strings.TrimSpace(f.values.Get(name)) }

// Whole is a field as a whole number, 0 when it is none.
func (f *Form) Whole(name string) int64 {
	n, err := strconv.ParseInt(f.Text(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// All are the values of a field that may stand several times.
func (f *Form) All(name string) []string { return f.values[name] }

// Has tells whether the field was sent at all, as a ticked box is.
func (f *Form) Has(name string) bool { return f.values.Has(name) }

// Raw is a field exactly as it was sent: a password may begin with a space.
func (f *Form) Raw(name string) string { return f.values.Get(name) }
