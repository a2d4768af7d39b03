#include "service/listen_error.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define UNIX_PREFIX "unix:"

static int try_bind(const struct sockaddr *address, socklen_t len)
{
    int one = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int error = bind(fd, address, len) < 0 || listen(fd, 1) < 0 ? errno : 0;
    close(fd);
    return error;
}

static int unix_errno(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    if (strlen(path) >= sizeof address.sun_path) {
        return ENAMETOOLONG;
    }
    if (lstat(path, &st) == 0) {
        return S_ISSOCK(st.st_mode) ? EACCES : EEXIST; /* gRPC removes a socket that it may */
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int error = try_bind((const struct sockaddr *)&address, sizeof address);
    if (error == 0) {
        (void)unlink(path);
    }
    return error;
}

static int tcp_errno(const char *address)
{
    char host[256];
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : sizeof host;
    if (len >= sizeof host) {
        return EINVAL;
    }
    int bracket = address[0] == '[' && address[len - 1] == ']';
    (void)snprintf(host, sizeof host, "%.*s", (int)len - 2 * bracket, address + bracket);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    if (getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, &found) != 0) {
        return EADDRNOTAVAIL;
    }
    int error = 0;
    for (struct addrinfo *at = found; at && error == 0; at = at->ai_next) {
        error = try_bind(at->ai_addr, at->ai_addrlen);
    }
    freeaddrinfo(found);
    return error;
}

int al_listen_errno(const char *address)
{
    size_t prefix = sizeof UNIX_PREFIX - 1;
    return strncmp(address, UNIX_PREFIX, prefix) == 0 ? unix_errno(address + prefix)
                                                      : tcp_errno(address);
}
