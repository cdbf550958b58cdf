package embedded

import "os"

// A living server mends what its clients need to find and reach it: token, record and socket.

// keepToken mends the token file, as long as it is ours.
func (s *server) keepToken(token string) {
	if !s.ours() {
		return
	}
	if err := s.cfg.keepToken(token); err != nil {
		s.log.Error("the token file does not hold this server's token and cannot be mended", "error", err)
	}
}

// keepRecord puts back the record without which nobody finds this server.
func (s *server) keepRecord() {
	if rec := s.cfg.readRecord(); rec != nil && rec.PID == s.record.PID {
		return
	}
	os.Remove(s.cfg.recordPath()) // a directory, perhaps
	if err := s.cfg.writeRecord(s.record); err != nil {
		s.log.Error("the record of this server is damaged and cannot be mended", "error", err)
	}
}

// keepSocket listens anew when the file of the socket is not there any more, or is another: somebody has cleaned up, as
// systems do in their temporary directories. Requests under way go on.
func (s *server) keepSocket() {
	if s.socket == nil {
		return
	}
	if now, err := os.Lstat(s.record.Bind.Unix); err == nil && os.SameFile(s.socket, now) {
		return
	}
	old, lost := s.listener, s.record.Bind.Unix
	bind, err := s.listen()
	if err != nil {
		s.log.Error("the socket of this server was removed and cannot be made again", "socket", lost, "error", err)
		return
	}
	s.accept()
	old.Close()
	s.log.Warn("the socket of this server was removed; it was made again", "socket", bind.Unix)
	if bind != s.record.Bind {
		s.record.Bind = bind
		os.Remove(s.cfg.recordPath()) // keepRecord writes it
	}
}

// ours reports whether the lock that this server holds is still that of the storage directory. When somebody has
// removed the directory it is not, and what is there now belongs to another server.
func (s *server) ours() bool {
	held, err := s.lock.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(s.cfg.lockPath())
	return err == nil && os.SameFile(held, now)
}
