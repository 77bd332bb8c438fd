package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"
)

// options say what one image has that another of the same recipe hasn't.
type options struct {
	version, arch string
	at            time.Time
}

// image returns the image with this program as `docker save` writes it, compressed.
func (r recipe) image(program []byte, o options) ([]byte, error) {
	layer, err := archive(o.at, entry{r.to, 0o755, program})
	if err != nil {
		return nil, err
	}
	document, err := json.Marshal(r.document(layer, o))
	if err != nil {
		return nil, err
	}
	layerName, configName := digest(layer)+"/layer.tar", digest(document)+".json"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{"aod/server:" + o.version}, "Layers": []string{layerName},
	}})
	if err != nil {
		return nil, err
	}
	all, err := archive(o.at, entry{configName, 0o644, document}, entry{layerName, 0o644, layer},
		entry{"manifest.json", 0o644, manifest})
	if err != nil {
		return nil, err
	}
	return compressed(all)
}

// document is the image's own description.
func (r recipe) document(layer []byte, o options) map[string]any {
	c := r.config
	c.Labels = map[string]string{"org.opencontainers.image.version": o.version}
	return map[string]any{
		"architecture": o.arch, "os": "linux", "created": o.at.Format(time.RFC3339), "config": c,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
		"history": []map[string]any{{"created": o.at.Format(time.RFC3339), "created_by": "COPY bin/aod /" + r.to}},
	}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// entry is a file of root's in an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

func archive(at time.Time, entries ...entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at,
			Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func compressed(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(content)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}
