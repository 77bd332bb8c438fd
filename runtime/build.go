package runtime

import (
	"context"
	"fmt"
	"io"
)

// tagDigits is how many hex digits of a context's digest make the tag: 64 bits.
const tagDigits = 16

// Recipe describes an image by its content: two recipes with the same name and digest make
// the same image.
type Recipe struct {
	Name         string // the image's repository, e.g. "aod-capsule/hello"
	Digest       string // hex sha256 of all that goes into it
	Labels       map[string]string
	WriteContext func(io.Writer) error
	AlsoTag      string // a second tag that moves along, or ""
	Limits       BuildLimits
}

// Tag returns the image's reference.
func (r Recipe) Tag() string { return r.Name + ":" + r.Digest[:min(tagDigits, len(r.Digest))] }

// ImageBuilder is the part of an Engine that BuildImage uses.
type ImageBuilder interface {
	Images
	Builder
}

// BuildImage builds the recipe's image and looks it up. The engine uses its build cache. The
// errors are those of Builder.Build and Images.Image.
func BuildImage(ctx context.Context, engine ImageBuilder, recipe Recipe, progress func(BuildEvent)) (Image, error) {
	tags := []string{recipe.Tag()}
	if recipe.AlsoTag != "" {
		tags = append(tags, recipe.AlsoTag)
	}
	spec := BuildSpec{Tags: tags, Labels: recipe.Labels, WriteContext: recipe.WriteContext, Limits: recipe.Limits}
	if _, err := engine.Build(ctx, spec, progress); err != nil {
		return Image{}, fmt.Errorf("build image: %w", err)
	}
	image, err := engine.Image(ctx, recipe.Tag())
	if err != nil {
		return Image{}, fmt.Errorf("look up built image: %w", err)
	}
	return image, nil
}
