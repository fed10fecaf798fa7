/* Keeps the sync ledger of a program that knows nothing of it, such as a JVM (LD_PRELOAD).
 *
 * The ledger's form is that of emulator/storage/sync_ledger.py. Only what a power loss could undo is noted: syncs, names,
 * and before anything durable goes, its bytes or a hard link. Appends are not noted: the disk says how long a file is.
 * Which bytes are durable is not known here either, so every removed file and every cut byte is kept; the reader of the
 * ledger sorts out what never was durable.
 *
 *     LASTSTAND_SYNC_ROOT      the directory below which files are noted
 *     LASTSTAND_SYNC_LEDGER    the ledger's folder, outside of it, on the same disk
 *     LASTSTAND_SYNC_NOTES     a file, or nothing. With it, bytes that are overwritten in place are kept, too, and one JSON
 *                              array per line is appended to it: ["refused", reason, path] before this library kills the
 *                              program, because nobody could say what a power loss leaves of such a change;
 *                              ["not modelled", reason, path, inode] where a change counts as durable at once.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define DELETED " (deleted)" /* what Linux appends to the path of an open file without a name */
#define HIGH_DESCRIPTOR 512  /* where programs that close all descriptors they may have inherited hardly come */

/* The C library's function of that name. */
#define NEXT(name)                                                                                                     \
    ({                                                                                                                 \
        static __typeof__(&name) found;                                                                                \
        if (found == NULL)                                                                                             \
            found = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                        \
        found;                                                                                                         \
    })

static char root[PATH_MAX];
static char kept[PATH_MAX];
static char notes[PATH_MAX];
static char ledger_path[PATH_MAX];
static struct stat ledger_file;
static int ledger = -1;

static void open_ledger(void)
{
    int low = NEXT(open)(ledger_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    ledger = low < 0 ? -1 : NEXT(fcntl)(low, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    if (ledger < 0)
        ledger = low;
    else
        close(low);
    if (ledger < 0 || fstat(ledger, &ledger_file) != 0) {
        perror(ledger_path);
        _exit(1);
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *directory = getenv("LASTSTAND_SYNC_ROOT"), *folder = getenv("LASTSTAND_SYNC_LEDGER");
    const char *wanted = getenv("LASTSTAND_SYNC_NOTES");
    if (directory == NULL || folder == NULL || realpath(directory, root) == NULL)
        return;
    snprintf(kept, sizeof kept, "%s/kept", folder);
    snprintf(ledger_path, sizeof ledger_path, "%s/ledger.jsonl", folder);
    snprintf(notes, sizeof notes, "%s", wanted == NULL ? "" : wanted);
    open_ledger();
}

/* Finds the ledger again where the program has closed a descriptor that it did not know. */
static void find_ledger(struct stat *status)
{
    if (fstat(ledger, status) != 0 || status->st_dev != ledger_file.st_dev || status->st_ino != ledger_file.st_ino) {
        open_ledger();
        *status = ledger_file;
    }
}

/* Appends lines with one write. A ledger with a gap would let a power loss take what is durable. */
static void note(const char *lines, size_t length)
{
    struct stat status;
    find_ledger(&status);
    if (NEXT(write)(ledger, lines, length) != (ssize_t)length) {
        perror("sync ledger");
        abort();
    }
}

__attribute__((format(printf, 1, 2))) static void notef(const char *format, ...)
{
    char line[PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    note(line, length);
}

/* How long the ledger is: what a sync that begins now has seen of it. */
static long ledger_length(void)
{
    struct stat status;
    if (ledger < 0)
        return 0;
    find_ledger(&status);
    return (long)status.st_size;
}

/* --- What cannot be modelled ------------------------------------------------------------------------------------ */

static int is_utf8(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        int more = *at < 0x80 ? 0 : *at < 0xC2 ? -1 : *at < 0xE0 ? 1 : *at < 0xF0 ? 2 : *at < 0xF5 ? 3 : -1;
        if (more < 0)
            return 0;
        for (at++; more > 0; more--, at++)
            if ((*at & 0xC0) != 0x80)
                return 0;
    }
    return 1;
}

/* Prints a JSON string. */
static void print_text(FILE *lines, const char *text)
{
    int is_whole = is_utf8(text);
    fputc('"', lines);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\' || *at < 0x20)
            fprintf(lines, "\\u%04x", *at);
        else
            fputc(*at < 0x80 || is_whole ? *at : '?', lines);
    }
    fputc('"', lines);
}

static void add_note(const char *kind, const char *reason, const char *path, ino_t inode)
{
    char *line = NULL;
    size_t length = 0;
    int fd = *notes == '\0' ? -1 : NEXT(open)(notes, O_WRONLY | O_APPEND | O_CLOEXEC);
    FILE *text = fd < 0 ? NULL : open_memstream(&line, &length);
    if (text == NULL)
        return;
    fprintf(text, "[\"%s\",\"%s\",", kind, reason);
    print_text(text, path);
    fprintf(text, ",%lu]\n", (unsigned long)inode);
    fclose(text);
    if (NEXT(write)(fd, line, length) != (ssize_t)length)
        perror(notes);
    free(line);
    close(fd);
}

/* Ends the program before it does what would make the ledger worthless; does nothing without a file of notes. */
static void refuse(const char *reason, const char *path)
{
    if (*notes == '\0')
        return;
    add_note("refused", reason, path, 0);
    kill(getpid(), SIGKILL);
}

static void add_not_modelled(const char *reason, const char *path, ino_t inode)
{
    int error = errno;
    add_note("not modelled", reason, path, inode);
    errno = error;
}

/* --- Paths ------------------------------------------------------------------------------------------------------ */

static int is_below_root(const char *path)
{
    size_t length = strlen(root);
    return ledger >= 0 && strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Finds the status of what a name stands for, if it is below the root. */
static int find(const char *path, struct stat *status)
{
    char copy[PATH_MAX], directory[PATH_MAX];
    if (ledger < 0 || strlen(path) >= sizeof copy || lstat(path, status) != 0)
        return 0;
    strcpy(copy, path);
    char *slash = strrchr(copy, '/');
    if (slash != NULL)
        *slash = '\0';
    return realpath(slash == NULL ? "." : *copy == '\0' ? "/" : copy, directory) != NULL && is_below_root(directory);
}

/* Returns the path of something below a directory, as the calls that end in "at" name it; the buffer may hold it. */
static const char *path_at(int directory, const char *path, char buffer[2 * PATH_MAX])
{
    char link[64];
    if (ledger < 0 || directory == AT_FDCWD || *path == '/' || strlen(path) >= PATH_MAX)
        return path;
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, buffer, PATH_MAX - 1);
    if (length <= 0)
        return path;
    snprintf(buffer + length, 2 * PATH_MAX - length, "/%s", path);
    return buffer;
}

/* Finds the path of an open file, if that is below the root. */
static int path_of(int fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = ledger < 0 ? -1 : readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = '\0';
    return length > 0 && is_below_root(path);
}

/* Prints the number of the directory that a path is in, and its name there. */
static void print_place(FILE *lines, const char *path)
{
    size_t length = strlen(path), suffix = strlen(DELETED);
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    struct stat parent;
    if (slash == NULL)
        snprintf(directory, sizeof directory, ".");
    else
        snprintf(directory, sizeof directory, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if ((length > suffix && strcmp(path + length - suffix, DELETED) == 0) || stat(directory, &parent) != 0) {
        fprintf(lines, "0,null");
        return;
    }
    const char *name = slash == NULL ? path : slash + 1;
    if (!is_utf8(name))
        refuse("a name that is not UTF-8", path);
    fprintf(lines, "%lu,", (unsigned long)parent.st_ino);
    print_text(lines, name);
}

/* Notes the name that a file or directory has got. */
static void note_name(const char *path, ino_t inode)
{
    char *line = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&line, &length);
    fprintf(text, "[\"name\",%lu,", (unsigned long)inode);
    print_place(text, path);
    fprintf(text, "]\n");
    fclose(text);
    note(line, length);
    free(line);
}

static void note_no_name(ino_t inode)
{
    notef("[\"name\",%lu,0,null]\n", (unsigned long)inode);
}

/* Notes a name that was made, if the call that was to make it succeeded; returns what the call did. */
static int note_made(int result, const char *path)
{
    struct stat status;
    int error = errno;
    if (result >= 0 && find(path, &status))
        note_name(path, status.st_ino);
    errno = error;
    return result;
}

/* --- What is kept before it goes -------------------------------------------------------------------------------- */

/* Holds on to a file that is about to lose a name. */
static void keep_file(const char *path, const struct stat *status)
{
    char target[PATH_MAX + 32];
    snprintf(target, sizeof target, "%s/%lu", kept, (unsigned long)status->st_ino);
    if (NEXT(link)(path, target) != 0 && errno != EEXIST)
        notef("[\"forget\",%lu]\n", (unsigned long)status->st_ino);
}

/* Keeps bytes of a file that are about to be cut or written over; without holes, of which Kafka's indexes have megabytes.
 */
static void keep_bytes(const char *change, const char *path, const struct stat *status, off_t start, off_t end)
{
    static unsigned int next;
    char target[PATH_MAX + 32], block[65536];
    unsigned int number;
    int from = NEXT(open)(path, O_RDONLY | O_CLOEXEC), to;
    do {
        number = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
        snprintf(target, sizeof target, "%s/cut-%u", kept, number);
        to = NEXT(open)(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    } while (to < 0 && errno == EEXIST);
    off_t at = start;
    int is_kept = from >= 0 && to >= 0 && NEXT(ftruncate)(to, end - start) == 0;
    while (is_kept && (at = lseek(from, at, SEEK_DATA)) >= 0 && at < end) {
        size_t left = end - at;
        ssize_t count = pread(from, block, left < sizeof block ? left : sizeof block, at);
        is_kept = count > 0 && NEXT(pwrite)(to, block, count, at - start) == count;
        at += count;
    }
    if (!is_kept) {
        perror(target);
        abort();
    }
    close(from);
    close(to);
    notef("[\"%s\",%lu,%ld,%ld,%u]\n", change, (unsigned long)status->st_ino, (long)start, (long)end, number);
}

static void keep_before_truncation(int fd, off_t size)
{
    char path[PATH_MAX], link[64];
    struct stat status;
    if (path_of(fd, path) && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && size < status.st_size) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd); /* the program's own position must not move */
        keep_bytes("cut", link, &status, size, status.st_size);
    }
}

static void keep_before_path_truncation(const char *path, off_t size)
{
    struct stat status;
    if (find(path, &status) && S_ISREG(status.st_mode) && size < status.st_size)
        keep_bytes("cut", path, &status, size, status.st_size);
}

/* --- What is synced --------------------------------------------------------------------------------------------- */

/* Prints that what has this inode is durable, under its newest name, too. */
static void print_sync(FILE *lines, const char *path, ino_t inode, off_t size, long seen)
{
    fprintf(lines, "[\"sync\",%lu,%ld,", (unsigned long)inode, (long)size);
    print_place(lines, path);
    fprintf(lines, ",%ld]\n", seen);
}

/* Prints the names in a directory, which are durable; nothing if it cannot be read. */
static void print_listing(FILE *lines, const char *path, ino_t inode, long seen)
{
    DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    const char *comma = "";
    fprintf(lines, "[\"dir\",%lu,{", (unsigned long)inode);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!is_utf8(entry->d_name))
            refuse("a name that is not UTF-8", entry->d_name);
        fprintf(lines, "%s", comma);
        print_text(lines, entry->d_name);
        fprintf(lines, ":%lu", (unsigned long)entry->d_ino);
        comma = ",";
    }
    fprintf(lines, "},%ld]\n", seen);
    closedir(directory);
}

static void print_directory(FILE *lines, const char *path, ino_t inode, long seen)
{
    print_listing(lines, path, inode, seen);
    if (strcmp(path, root) != 0)
        print_sync(lines, path, inode, 0, seen);
}

static void note_sync(const char *path, ino_t inode, off_t size, long seen)
{
    char *line = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&line, &length);
    print_sync(text, path, inode, size, seen);
    fclose(text);
    note(line, length);
    free(line);
}

static int sync_file(int fd, int (*sync)(int))
{
    char path[PATH_MAX], *lines = NULL;
    struct stat before, after;
    size_t length = 0;
    long seen = ledger_length();
    int is_noted = path_of(fd, path) && fstat(fd, &before) == 0;
    if (is_noted && S_ISDIR(before.st_mode)) { /* what comes later is not certain to be durable */
        FILE *text = open_memstream(&lines, &length);
        print_directory(text, path, before.st_ino, seen);
        fclose(text);
    }
    int result = sync(fd);
    if (is_noted && result == 0 && lines != NULL) {
        note(lines, length);
    } else if (is_noted && result == 0 && S_ISREG(before.st_mode) && fstat(fd, &after) == 0) {
        /* shorter if it was truncated meanwhile */
        note_sync(path, before.st_ino, before.st_size < after.st_size ? before.st_size : after.st_size, seen);
    }
    free(lines);
    return result;
}

/* Finds the file that is mapped at an address. */
static int mapped_file(const void *address, char *path, struct stat *status)
{
    char line[PATH_MAX + 128];
    int is_found = 0;
    FILE *maps = ledger < 0 ? NULL : fopen("/proc/self/maps", "re");
    while (maps != NULL && !is_found && fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095[^\n]", &start, &end, path) == 3)
            is_found = (unsigned long)address >= start && (unsigned long)address < end;
    }
    if (maps != NULL)
        fclose(maps);
    return is_found && is_below_root(path) && stat(path, status) == 0;
}

static __thread FILE *walked; /* nftw() passes nothing on */
static __thread long walk_seen;

static int print_walked(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)at;
    if (type == FTW_D)
        print_directory(walked, path, status->st_ino, walk_seen);
    else if (type == FTW_F && S_ISREG(status->st_mode))
        print_sync(walked, path, status->st_ino, status->st_size, walk_seen);
    return 0;
}

/* Returns the lines that make everything durable, to be freed; NULL where there is no ledger. */
static char *walk_root(size_t *length)
{
    char *lines = NULL;
    if (ledger < 0)
        return NULL;
    walk_seen = ledger_length();
    walked = open_memstream(&lines, length);
    nftw(root, print_walked, 16, FTW_PHYS | FTW_MOUNT);
    fclose(walked);
    return lines;
}

/* --- The calls: syncs ------------------------------------------------------------------------------------------- */

int fsync(int fd)
{
    return sync_file(fd, NEXT(fsync));
}

int fdatasync(int fd)
{
    return sync_file(fd, NEXT(fdatasync));
}

int msync(void *address, size_t length, int flags)
{
    char path[PATH_MAX];
    struct stat status;
    long seen = ledger_length();
    int is_noted = (flags & MS_SYNC) != 0 && mapped_file(address, path, &status);
    int result = NEXT(msync)(address, length, flags);
    if (is_noted && result == 0)
        note_sync(path, status.st_ino, status.st_size, seen);
    return result;
}

void sync(void)
{
    size_t length = 0;
    char *lines = walk_root(&length);
    NEXT(sync)();
    if (lines != NULL)
        note(lines, length);
    free(lines);
}

int syncfs(int fd)
{
    struct stat status;
    size_t length = 0;
    char *lines = fstat(fd, &status) == 0 && status.st_dev == ledger_file.st_dev ? walk_root(&length) : NULL;
    int result = NEXT(syncfs)(fd);
    if (lines != NULL && result == 0)
        note(lines, length);
    free(lines);
    return result;
}

/* sync_file_range(2) writes neither metadata nor what is in the disk's own cache: it makes nothing durable. */
static void look_at_sync_file_range(int fd)
{
    char path[PATH_MAX];
    if (*notes != '\0' && path_of(fd, path))
        add_not_modelled("sync_file_range makes nothing durable", path, 0);
}

int sync_file_range(int fd, off64_t offset, off64_t length, unsigned int flags)
{
    look_at_sync_file_range(fd);
    return NEXT(sync_file_range)(fd, offset, length, flags);
}

/* --- The calls: bytes ------------------------------------------------------------------------------------------- */

int ftruncate(int fd, off_t size)
{
    keep_before_truncation(fd, size);
    return NEXT(ftruncate)(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    keep_before_truncation(fd, size);
    return NEXT(ftruncate64)(fd, size);
}

int truncate(const char *path, off_t size)
{
    keep_before_path_truncation(path, size);
    return NEXT(truncate)(path, size);
}

int truncate64(const char *path, off64_t size)
{
    keep_before_path_truncation(path, size);
    return NEXT(truncate64)(path, size);
}

/* Bytes that a write changes. */
struct change {
    char path[PATH_MAX];
    ino_t inode;
    off_t start;
    long seen;
    int is_synchronous;
};

#define POSITION (-1) /* the offset of a write at the file's own position */

/* Keeps what a write is about to write over; returns whether it has to be noted afterwards that it is durable. */
static int before_write(struct change *change, int fd, off_t offset, size_t length, int flags)
{
    struct stat status;
    if (*notes == '\0' || !path_of(fd, change->path) || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    int mode = NEXT(fcntl)(fd, F_GETFL);
    change->inode = status.st_ino;
    change->start = (mode & O_APPEND) != 0 ? status.st_size : offset == POSITION ? lseek(fd, 0, SEEK_CUR) : offset;
    off_t end = change->start + (off_t)length;
    if (length > 0 && change->start < status.st_size) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        keep_bytes("over", link, &status, change->start, end < status.st_size ? end : status.st_size);
    }
    change->seen = ledger_length();
    return (mode & O_DSYNC) != 0 || (flags & (RWF_DSYNC | RWF_SYNC)) != 0;
}

static ssize_t after_write(const struct change *change, int is_synchronous, ssize_t count)
{
    if (!is_synchronous || count <= 0)
        return count;
    char *line = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&line, &length);
    fprintf(text, "[\"wrote\",%lu,%ld,%ld,", (unsigned long)change->inode, (long)change->start, (long)(change->start + count));
    print_place(text, change->path);
    fprintf(text, ",%ld]\n", change->seen);
    fclose(text);
    note(line, length);
    free(line);
    return count;
}

static size_t total(const struct iovec *pieces, int count)
{
    size_t length = 0;
    for (int at = 0; at < count; at++)
        length += pieces[at].iov_len;
    return length;
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    struct change change;
    int is_synchronous = before_write(&change, fd, POSITION, length, 0);
    return after_write(&change, is_synchronous, NEXT(write)(fd, bytes, length));
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    struct change change;
    int is_synchronous = before_write(&change, fd, POSITION, total(pieces, count), 0);
    return after_write(&change, is_synchronous, NEXT(writev)(fd, pieces, count));
}

#define DEFINE_PWRITE(name, offset_type)                                                                               \
    ssize_t name(int fd, const void *bytes, size_t length, offset_type offset)                                         \
    {                                                                                                                  \
        struct change change;                                                                                            \
        int is_synchronous = before_write(&change, fd, offset, length, 0);                                              \
        return after_write(&change, is_synchronous, NEXT(name)(fd, bytes, length, offset));                             \
    }

DEFINE_PWRITE(pwrite, off_t)
DEFINE_PWRITE(pwrite64, off64_t)

#define DEFINE_PWRITEV(name, offset_type)                                                                              \
    ssize_t name(int fd, const struct iovec *pieces, int count, offset_type offset)                                    \
    {                                                                                                                  \
        struct change change;                                                                                            \
        int is_synchronous = before_write(&change, fd, offset, total(pieces, count), 0);                                \
        return after_write(&change, is_synchronous, NEXT(name)(fd, pieces, count, offset));                             \
    }

DEFINE_PWRITEV(pwritev, off_t)
DEFINE_PWRITEV(pwritev64, off64_t)

#define DEFINE_PWRITEV2(name, offset_type)                                                                             \
    ssize_t name(int fd, const struct iovec *pieces, int count, offset_type offset, int flags)                         \
    {                                                                                                                  \
        struct change change;                                                                                            \
        int is_synchronous = before_write(&change, fd, offset, total(pieces, count), flags);                            \
        return after_write(&change, is_synchronous, NEXT(name)(fd, pieces, count, offset, flags));                      \
    }

DEFINE_PWRITEV2(pwritev2, off_t)
DEFINE_PWRITEV2(pwritev64v2, off64_t)

static void keep_before_fallocate(int fd, int mode, off_t offset, off_t length)
{
    char path[PATH_MAX];
    struct stat status;
    if ((mode & ~FALLOC_FL_KEEP_SIZE) == 0 || *notes == '\0' || !path_of(fd, path) || fstat(fd, &status) != 0)
        return;
    if ((mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0)
        refuse("bytes that fallocate moves", path);
    off_t end = offset + length < status.st_size ? offset + length : status.st_size;
    if (offset < end)
        keep_bytes("over", path, &status, offset, end);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    keep_before_fallocate(fd, mode, offset, length);
    return NEXT(fallocate)(fd, mode, offset, length);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length)
{
    keep_before_fallocate(fd, mode, offset, length);
    return NEXT(fallocate64)(fd, mode, offset, length);
}

static void look_at_mapping(int protection, int flags, int fd)
{
    char path[PATH_MAX];
    struct stat status;
    int is_shared = (flags & MAP_SHARED) != 0 && (flags & MAP_ANONYMOUS) == 0 && (protection & PROT_WRITE) != 0;
    if (*notes != '\0' && is_shared && path_of(fd, path) && fstat(fd, &status) == 0)
        add_not_modelled("bytes that are changed through a shared mapping", path, status.st_ino);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    look_at_mapping(protection, flags, fd);
    return NEXT(mmap)(address, length, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset)
{
    look_at_mapping(protection, flags, fd);
    return NEXT(mmap64)(address, length, protection, flags, fd, offset);
}

/* --- The calls: opened files ------------------------------------------------------------------------------------ */

static mode_t mode_of(int flags, va_list arguments)
{
    int has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    return has_mode ? va_arg(arguments, mode_t) : 0;
}

/* Keeps what opening a file would cut; returns whether a file of that name would be a new one. */
static int before_open(const char *path, int flags)
{
    struct stat status;
    if ((flags & O_TRUNC) != 0)
        keep_before_path_truncation(path, 0);
    return ledger >= 0 && (flags & O_CREAT) != 0 && lstat(path, &status) != 0;
}

static int after_open(int fd, const char *path, int flags, int is_new)
{
    char found[PATH_MAX];
    if (fd >= 0 && (flags & O_DIRECT) != 0 && path_of(fd, found))
        refuse("O_DIRECT", found);
    return is_new ? note_made(fd, path) : fd;
}

#define DEFINE_OPEN(name)                                                                                              \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = mode_of(flags, arguments);                                                                       \
        va_end(arguments);                                                                                             \
        int is_new = before_open(path, flags);                                                                         \
        return after_open(NEXT(name)(path, flags, mode), path, flags, is_new);                                         \
    }

DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_OPENAT(name)                                                                                            \
    int name(int directory, const char *path, int flags, ...)                                                          \
    {                                                                                                                  \
        char buffer[2 * PATH_MAX];                                                                                     \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = mode_of(flags, arguments);                                                                       \
        va_end(arguments);                                                                                             \
        const char *full = path_at(directory, path, buffer);                                                           \
        int is_new = before_open(full, flags);                                                                         \
        return after_open(NEXT(name)(directory, path, flags, mode), full, flags, is_new);                              \
    }

DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

/* What programs call that were compiled with _FORTIFY_SOURCE; without a mode, so that they make no file. */
int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

int __open64_2(const char *path, int flags)
{
    return open64(path, flags);
}

int __openat_2(int directory, const char *path, int flags)
{
    return openat(directory, path, flags);
}

int __openat64_2(int directory, const char *path, int flags)
{
    return openat64(directory, path, flags);
}

int creat(const char *path, mode_t mode)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

int creat64(const char *path, mode_t mode)
{
    return open64(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

static int flags_of(const char *mode)
{
    return *mode == 'w' ? O_CREAT | O_TRUNC : *mode == 'a' ? O_CREAT : 0;
}

/* The C library's streams write past this library. */
static FILE *after_fopen(FILE *stream, const char *path, const char *mode, int is_new)
{
    char found[PATH_MAX];
    struct stat status;
    if (stream == NULL)
        return NULL;
    int fd = fileno(stream);
    if (is_new)
        note_made(fd, path);
    else if (*notes != '\0' && *mode != 'a' && strchr(mode, '+') != NULL && path_of(fd, found) && fstat(fd, &status) == 0)
        add_not_modelled("bytes that are written over through a stream of the C library", found, status.st_ino);
    return stream;
}

#define DEFINE_FOPEN(name)                                                                                             \
    FILE *name(const char *path, const char *mode)                                                                     \
    {                                                                                                                  \
        int is_new = before_open(path, flags_of(mode));                                                                \
        return after_fopen(NEXT(name)(path, mode), path, mode, is_new);                                                \
    }

DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

#define DEFINE_FREOPEN(name)                                                                                           \
    FILE *name(const char *path, const char *mode, FILE *stream)                                                       \
    {                                                                                                                  \
        int is_new = path != NULL && before_open(path, flags_of(mode));                                                \
        return after_fopen(NEXT(name)(path, mode, stream), path, mode, is_new);                                        \
    }

DEFINE_FREOPEN(freopen)
DEFINE_FREOPEN(freopen64)

#define DEFINE_MKSTEMP(name, parameters, ...)                                                                          \
    int name parameters                                                                                                \
    {                                                                                                                  \
        return note_made(NEXT(name)(__VA_ARGS__), template);                                                           \
    }

DEFINE_MKSTEMP(mkstemp, (char *template), template)
DEFINE_MKSTEMP(mkstemp64, (char *template), template)
DEFINE_MKSTEMP(mkostemp, (char *template, int flags), template, flags)
DEFINE_MKSTEMP(mkostemp64, (char *template, int flags), template, flags)
DEFINE_MKSTEMP(mkstemps, (char *template, int suffix), template, suffix)
DEFINE_MKSTEMP(mkstemps64, (char *template, int suffix), template, suffix)
DEFINE_MKSTEMP(mkostemps, (char *template, int suffix, int flags), template, suffix, flags)
DEFINE_MKSTEMP(mkostemps64, (char *template, int suffix, int flags), template, suffix, flags)

#define DEFINE_FCNTL(name)                                                                                             \
    int name(int fd, int command, ...)                                                                                 \
    {                                                                                                                  \
        char path[PATH_MAX];                                                                                           \
        va_list arguments;                                                                                             \
        va_start(arguments, command);                                                                                  \
        void *argument = va_arg(arguments, void *);                                                                    \
        va_end(arguments);                                                                                             \
        if (command == F_SETFL && ((long)argument & O_DIRECT) != 0 && path_of(fd, path))                               \
            refuse("O_DIRECT", path);                                                                                  \
        return NEXT(name)(fd, command, argument);                                                                      \
    }

DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)

/* --- The calls: names ------------------------------------------------------------------------------------------- */

int mkdir(const char *path, mode_t mode)
{
    return note_made(NEXT(mkdir)(path, mode), path);
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    char buffer[2 * PATH_MAX];
    return note_made(NEXT(mkdirat)(directory, path, mode), path_at(directory, path, buffer));
}

char *mkdtemp(char *template)
{
    char *made = NEXT(mkdtemp)(template);
    note_made(made == NULL ? -1 : 0, template);
    return made;
}

int symlink(const char *target, const char *path)
{
    return note_made(NEXT(symlink)(target, path), path);
}

int symlinkat(const char *target, int directory, const char *path)
{
    char buffer[2 * PATH_MAX];
    return note_made(NEXT(symlinkat)(target, directory, path), path_at(directory, path, buffer));
}

/* The ledger knows one name of a file. One that has none yet, opened with O_TMPFILE, may get it. */
static void look_at_link(const char *source, const char *target)
{
    struct stat status;
    if (*notes != '\0' && find(source, &status) && status.st_nlink > 0 && !S_ISLNK(status.st_mode))
        refuse("a second name of a file (a hard link)", target);
}

int link(const char *source, const char *target)
{
    look_at_link(source, target);
    return note_made(NEXT(link)(source, target), target);
}

int linkat(int from, const char *source, int to, const char *target, int flags)
{
    char first[2 * PATH_MAX], second[2 * PATH_MAX];
    const char *path = path_at(to, target, second);
    look_at_link(path_at(from, source, first), path);
    return note_made(NEXT(linkat)(from, source, to, target, flags), path);
}

static void keep_before_rename(const char *target)
{
    struct stat status;
    if (find(target, &status) && S_ISREG(status.st_mode))
        keep_file(target, &status);
}

int rename(const char *source, const char *target)
{
    keep_before_rename(target);
    return note_made(NEXT(rename)(source, target), target);
}

int renameat(int from, const char *source, int to, const char *target)
{
    char buffer[2 * PATH_MAX];
    const char *path = path_at(to, target, buffer);
    keep_before_rename(path);
    return note_made(NEXT(renameat)(from, source, to, target), path);
}

int renameat2(int from, const char *source, int to, const char *target, unsigned int flags)
{
    char first[2 * PATH_MAX], second[2 * PATH_MAX];
    const char *path = path_at(to, target, second);
    if ((flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)) == 0)
        keep_before_rename(path);
    int result = note_made(NEXT(renameat2)(from, source, to, target, flags), path);
    return (flags & RENAME_EXCHANGE) != 0 ? note_made(result, path_at(from, source, first)) : result;
}

int unlink(const char *path)
{
    struct stat status;
    int is_noted = find(path, &status) && !S_ISDIR(status.st_mode);
    if (is_noted && S_ISREG(status.st_mode))
        keep_file(path, &status);
    int result = NEXT(unlink)(path);
    if (is_noted && result == 0)
        note_no_name(status.st_ino);
    return result;
}

static int is_empty(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;
    while (directory != NULL && readdir(directory) != NULL)
        count++;
    if (directory != NULL)
        closedir(directory);
    return count == 2; /* itself and its parent */
}

int rmdir(const char *path)
{
    char target[PATH_MAX + 32];
    struct stat status;
    if (!find(path, &status) || !S_ISDIR(status.st_mode) || !is_empty(path))
        return NEXT(rmdir)(path);
    snprintf(target, sizeof target, "%s/%lu", kept, (unsigned long)status.st_ino);
    int result = NEXT(rename)(path, target);
    if (result == 0)
        note_no_name(status.st_ino);
    return result;
}

int unlinkat(int directory, const char *path, int flags)
{
    char buffer[2 * PATH_MAX];
    struct stat status;
    const char *full = path_at(directory, path, buffer);
    if (!find(full, &status))
        return NEXT(unlinkat)(directory, path, flags);
    return (flags & AT_REMOVEDIR) != 0 ? rmdir(full) : unlink(full);
}

int remove(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) ? rmdir(path) : unlink(path);
}

/* --- The calls that have no function ---------------------------------------------------------------------------- */

long syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    long first = va_arg(arguments, long), second = va_arg(arguments, long), third = va_arg(arguments, long);
    long fourth = va_arg(arguments, long), fifth = va_arg(arguments, long), sixth = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_io_uring_setup)
        refuse("io_uring", "");
    if (number == SYS_renameat2)
        return renameat2((int)first, (const char *)second, (int)third, (const char *)fourth, (unsigned int)fifth);
    return NEXT(syscall)(number, first, second, third, fourth, fifth, sixth);
}
