// Package atomicfile replaces files whole: whoever reads one sees the old text or
// the new, never half of either. That holds after a crash too, except on Windows,
// which promises nothing for that case.
package atomicfile
