package tools

import "testing"

// BenchmarkNewServer is what the tools add to a cold start.
func BenchmarkNewServer(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		server, err := NewServer(Config{})
		if err == nil {
			err = server.Check()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
