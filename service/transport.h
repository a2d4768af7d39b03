/* The settings of gRPC's server: sizes, keep-alive, what is off. */
#pragma once

#include <grpc/grpc.h>

#include "service/service.h"

/* Owned by the caller. */
grpc_server *al_transport_create(const struct al_service *service);
