/* Queries of the file that HDF5 has open, for the layers hdf5 and netcdf: netCDF is built
 * on HDF5 and has no such queries. HDF5's functions are looked up in the running program
 * (dlsym), since netCDF loads them even where the layer hdf5 is not compiled in. No HDF5
 * header is needed. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* hid_t has 64 bits since HDF5 1.10. */
typedef ssize_t list_open_t(int64_t, unsigned, size_t, int64_t *);
typedef ssize_t get_name_t(int64_t, char *, size_t);
typedef int64_t get_start_t(int64_t);
typedef int get_handle_t(int64_t, int64_t, void **);

enum { all_files = 0x1f, files = 0x1, datasets = 0x2, most = 64 };

static int look_up(const char *name, void *function)
{
    void *const found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Returns the byte where an open dataset begins, or -1 if unknown. */
int64_t benchio_dataset_start(const char *path_in_file)
{
    int64_t open[most];
    char name[most];
    list_open_t *list_open;
    get_name_t *get_name;
    get_start_t *get_start;

    if (!look_up("H5Fget_obj_ids", &list_open) || !look_up("H5Iget_name", &get_name) ||
        !look_up("H5Dget_offset", &get_start))
        return -1;
    const ssize_t found = list_open(all_files, datasets, most, open);
    for (ssize_t at = 0; at < found; at++)
        if (get_name(open[at], name, sizeof name) > 0 && strcmp(name, path_in_file) == 0)
            return get_start(open[at]);
    return -1;
}

/* Returns the C MPI_File of the open file, which is a pointer in all MPI libraries, or
 * NULL. */
void *benchio_hdf5_mpi_file(void)
{
    int64_t open;
    void *place;
    list_open_t *list_open;
    get_handle_t *get_handle;

    if (!look_up("H5Fget_obj_ids", &list_open) || !look_up("H5Fget_vfd_handle", &get_handle))
        return NULL;
    if (list_open(all_files, files, 1, &open) != 1 || get_handle(open, 0, &place) < 0)
        return NULL;
    return *(void **)place;
}
