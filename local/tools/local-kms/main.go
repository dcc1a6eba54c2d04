// A key service as AWS has it, for tests. Local KMS itself listens at all addresses of the machine; this one listens
// at one: local-kms ADDRESS:PORT FOLDER.
package main

import (
	"log"
	"net/http"
	"os"

	"github.com/nsmithuk/local-kms/src"
	"github.com/nsmithuk/local-kms/src/config"
	"github.com/nsmithuk/local-kms/src/data"
)

func main() {
	config.AWSRegion, config.AWSAccountId = "us-east-1", "111122223333"
	database := data.NewDatabase(os.Args[2])
	defer database.Close()
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		src.HandleRequest(w, r, database)
	})))
}
