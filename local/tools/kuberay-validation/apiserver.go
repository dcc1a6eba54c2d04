package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/yaml"
)

const version = "v1"

// apiServer does with a new object what an API server does with one of a CustomResourceDefinition's kinds
// (apiextensions-apiserver: customresource_handler.go, registry/customresource/strategy.go), under strict field validation.
type apiServer map[string]kind

type kind struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *schemacel.Validator
}

func newAPIServer(folder string) (apiServer, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	server := apiServer{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if server[crd.Spec.Names.Kind], err = newKind(crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return server, nil
}

func newKind(crd apiextensionsv1.CustomResourceDefinition) (kind, error) {
	for _, served := range crd.Spec.Versions {
		if served.Name != version {
			continue
		}
		var properties apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			served.Schema.OpenAPIV3Schema, &properties, nil); err != nil {
			return kind{}, err
		}
		structural, err := structuralschema.NewStructural(&properties)
		if err != nil {
			return kind{}, err
		}
		schema, _, err := validation.NewSchemaValidator(&properties)
		return kind{structural, schema, schemacel.NewValidator(structural, true, celconfig.PerCallLimit)}, err
	}
	return kind{}, fmt.Errorf("serves no %s", version)
}

// create returns the object as it is stored, or what is wrong with it.
func (server apiServer) create(body []byte) ([]byte, []string) {
	object := map[string]any{}
	if err := decode(body, &object); err != nil {
		return nil, []string{err.Error()}
	}
	kind, known := server[fmt.Sprint(object["kind"])]
	if !known || object["apiVersion"] != "ray.io/"+version {
		return nil, []string{fmt.Sprintf("no matches for kind %v in version %v", object["kind"], object["apiVersion"])}
	}
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, []string{err.Error()}
	}
	unknown = append(unknown, pruning.PruneWithOptions(object, kind.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	var errs []string
	for _, path := range unknown {
		errs = append(errs, fmt.Sprintf("unknown field %q", path))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, kind.structural)
	defaulting.Default(object, kind.structural)
	delete(object, "status")
	if meta == nil {
		return nil, append(errs, "metadata: Required value")
	}
	if meta.Name == "" && meta.GenerateName != "" {
		meta.Name = names.SimpleNameGenerator.GenerateName(meta.GenerateName)
	}
	if meta.Namespace == "" {
		meta.Namespace = namespace
	}
	if err := objectmeta.SetObjectMeta(object, meta); err != nil {
		return nil, append(errs, err.Error())
	}
	list := append(kind.validate(object),
		metavalidation.ValidateObjectMeta(meta, true, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	for _, err := range list {
		errs = append(errs, err.Error())
	}
	stored, err := json.Marshal(object)
	if err != nil {
		return nil, append(errs, err.Error())
	}
	return stored, errs
}

func (kind kind) validate(object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, kind.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, kind.structural, object)...)
	if len(errs) > 0 {
		return errs
	}
	broken, _ := kind.rules.Validate(context.Background(), nil, kind.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return broken
}
