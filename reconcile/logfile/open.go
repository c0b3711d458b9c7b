package logfile

import (
	"errors"
	"os"
	"syscall"
)

// errLink refuses a link in the place of the file.
var errLink = &FormatError{"it is a symbolic link: name the file itself"}

// openFile opens what stands at path itself. The folder is the agent's: a link in it could
// lead the server to a file that only the server may read, or have it append to one, and a
// pipe would be waited for. Whatever else is no regular file is refused by check.
func openFile(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errLink
	}
	return f, err
}
