// Package kubernetes has the one name of Pulumi's SDK that the provider uses.
package kubernetes

import "reflect"

// UntypedArgs are the inputs of a resource of any kind.
type UntypedArgs map[string]interface{}

// ElementType is the type of the inputs' values.
func (UntypedArgs) ElementType() reflect.Type {
	return reflect.TypeOf((*map[string]interface{})(nil)).Elem()
}
