package embedded

import (
	"net"
	"os"

	"fabro-mcp/fabroapi/wire"
)

// stopSignals end a server in an orderly way.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// isSocket is false: servers listen on ports here.
func isSocket(string) bool { return false }

// listen opens a port on the loopback address. The token keeps others out.
func (c *Config) listen() (net.Listener, wire.ServerBind, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, wire.ServerBind{}, err
	}
	return l, wire.ServerBind{TCP: l.Addr().String()}, nil
}

// checkPrivate has nothing to check: there are no sockets in shared directories.
func checkPrivate(dir string) error { return nil }
