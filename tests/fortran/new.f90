! The module mpi_f08: handles that are types, error codes that are left out, large counts, procedures that the compiler
! checks; and what C finds of it.
module procedures
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: handled = 0
contains
  subroutine larger(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    if (datatype /= MPI_INTEGER) return
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = max(in, inout)
  end subroutine

  subroutine larger_c(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(kind=MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = max(in, inout)
  end subroutine

  subroutine handler(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    call MPI_Error_class(error_code, handled)
    if (comm == MPI_COMM_NULL) handled = -1
  end subroutine

  subroutine twice(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Datatype) :: oldtype
    integer :: type_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    attribute_val_out = extra_state * attribute_val_in
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine asked(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state), ierror)
  end subroutine

  subroutine released(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    extra_state = extra_state + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancelled(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
end module

program module_f08
  use mpi_f08
  use procedures
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Request) :: requests(2)
  type(MPI_Datatype) :: vector, copy
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: errors, found
  type(MPI_Info) :: info
  type(c_ptr) :: detached
  integer :: rank, size, n, i, err, keyval, next, previous, buffer(200)
  integer, asynchronous :: got(4), wide(5, 7)
  complex, asynchronous :: waves(6)
  integer(kind=MPI_COUNT_KIND) :: many
  integer(kind=MPI_ADDRESS_KIND) :: low, extent, value
  integer, asynchronous :: grid(6, 6)
  logical :: flag, yes, no
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  interface
    integer(c_int) function seen_from_c(comm, key, expected) bind(C)
      import :: c_int, c_intptr_t
      integer(c_int), value :: comm, key
      integer(c_intptr_t), value :: expected
    end function
    integer(c_int) function status_seen_from_c(status, tag) bind(C)
      import :: c_int, MPI_Status
      type(MPI_Status) :: status
      integer(c_int), value :: tag
    end function
    integer(c_int) function ignored_in_c(one, many) bind(C)
      import :: c_int, MPI_Status
      type(MPI_Status) :: one, many(*)
    end function
  end interface

  ! What the compiler has for true and false may be told once, before the start.
  call MPI_Abi_get_fortran_booleans(4, yes, no, flag)
  call check(.not. flag, 'nobody has told')
  call MPI_Abi_set_fortran_booleans(4, .true., .false., err)
  call check(err == MPI_SUCCESS, 'told')
  yes = .false.
  no = .true.
  call MPI_Abi_get_fortran_booleans(4, yes, no, flag)
  call check(flag .and. yes .and. .not. no, 'true and false')
  call MPI_Abi_get_fortran_info(info)
  call check(info == MPI_INFO_NULL, 'no sizes are known')
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'mpi_integer_size', '4')
  call MPI_Abi_set_fortran_info(info, err)
  call check(err == MPI_SUCCESS, 'sizes')
  call MPI_Info_free(info)
  call MPI_Abi_get_fortran_info(info)
  call MPI_Info_get_nkeys(info, n)
  call check(n == 1, 'the same sizes')
  call MPI_Info_free(info)

  call MPI_Init()
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  next = mod(rank+1, size)
  previous = mod(rank+size-1, size)
  call MPI_Get_library_version(version, n)
  call check(n > 0 .and. version(n+1:) == ' ', 'version')
  call check(comm == MPI_COMM_WORLD .and. comm /= MPI_COMM_SELF, 'comparison of handles')

  ! Both kinds of counts, with sections and without error codes.
  grid = rank
  many = 3
  call MPI_Irecv(got, 4, MPI_INTEGER, previous, 1, comm, requests(1))
  call MPI_Isend([rank, 1, 2], many, MPI_INTEGER, next, 1, comm, requests(2), ierror=err)
  call MPI_Waitall(2, requests, statuses)
  call check(statuses(1)%MPI_SOURCE == previous .and. statuses(1)%MPI_TAG == 1, 'statuses')
  call MPI_Get_count(statuses(1), MPI_INTEGER, many)
  call check(many == 3 .and. all(got(:3) == [previous, 1, 2]), 'large counts')
  call check(requests(1) == MPI_REQUEST_NULL, 'request is null')
  call MPI_Sendrecv(grid(2, 1:6:2), 3, MPI_INTEGER, next, 2, got, 3, MPI_INTEGER, previous, 2, comm, status)
  call check(all(got(:3) == previous), 'a section is sent')
  call MPI_Bcast(grid(3, 2:4), 3, MPI_INTEGER, 0, comm)
  call check(all(grid(3, 2:4) == 0) .and. grid(3, 1) == rank .and. grid(3, 5) == rank, 'a section is filled')
  call MPI_Type_vector(6_MPI_COUNT_KIND, 1_MPI_COUNT_KIND, 6_MPI_COUNT_KIND, MPI_INTEGER, vector)
  call MPI_Type_commit(vector)
  call MPI_Type_get_extent(vector, low, extent)
  call check(low == 0 .and. extent == 31*4, 'extent')
  grid(1, :) = rank + 5
  call MPI_Bcast(grid, 1, vector, 0, comm)
  call check(all(grid(1, :) == 5), 'a type')

  ! Procedures of the program.
  call MPI_Op_create(larger, .true., op)
  call MPI_Allreduce(rank, n, 1, MPI_INTEGER, op, comm)
  call check(n == size-1, 'own operation')
  call MPI_Op_free(op)
  call check(op == MPI_OP_NULL, 'operation is null')
  call MPI_Op_create_c(larger_c, .true., op)
  call MPI_Allreduce(rank, n, 1_MPI_COUNT_KIND, MPI_INTEGER, op, comm)
  call check(n == size-1, 'own operation with large counts')
  call MPI_Op_free(op)
  call MPI_Comm_dup(comm, comm)
  call MPI_Comm_create_errhandler(handler, errors)
  call MPI_Comm_set_errhandler(comm, errors)
  call MPI_Send(n, 1, MPI_INTEGER, 0, -5, comm, err)
  call check(handled == MPI_ERR_TAG .and. err /= MPI_SUCCESS, 'error handler')
  call MPI_Comm_get_errhandler(comm, found)
  call check(found == errors, 'the handler that was set')
  call MPI_Errhandler_free(found)
  call MPI_Errhandler_free(errors)
  call MPI_Type_create_keyval(twice, MPI_TYPE_NULL_DELETE_FN, keyval, 3_MPI_ADDRESS_KIND)
  call MPI_Type_set_attr(vector, keyval, 14_MPI_ADDRESS_KIND)
  call MPI_Type_dup(vector, copy)
  call MPI_Type_get_attr(copy, keyval, value, flag)
  call check(flag .and. value == 42, 'attribute of a type')
  call MPI_Type_free(copy)

  ! Sections that the compiler may not copy: whole rows and a begun one, both ways; halves of an element; one element
  ! that stands for those behind it.
  wide = -1
  grid(4, :) = [(10*rank + i, i = 1, 6)]
  call MPI_Irecv(wide(1:5:2, 2:7:3), 5, MPI_INTEGER, previous, 3, comm, requests(1))
  call MPI_Isend(grid(4, 2:6), 5, MPI_INTEGER, next, 3, comm, requests(2))
  call MPI_Waitall(2, requests, statuses)
  call check(all(wide(1:5:2, 2) == 10*previous + [2, 3, 4]), 'a row')
  call check(all(wide(1:3:2, 5) == 10*previous + [5, 6]), 'a begun row')
  call check(count(wide == -1) == 30 .and. wide(5, 5) == -1, 'nothing else of a section')
  call MPI_Irecv(wide(2, 1), 4, MPI_INTEGER, previous, 4, comm, requests(1))
  call PMPI_Isend(wide(5:1:-2, 2), 3_MPI_COUNT_KIND, MPI_INTEGER, next, 4, comm, requests(2))
  call MPI_Waitall(2, requests, statuses)
  call check(all(wide(2:4, 1) == 10*modulo(previous-1, size) + [4, 3, 2]) .and. wide(5, 1) == -1, 'backwards')
  waves = [(cmplx(rank, i), i = 1, 6)]
  call MPI_Recv_init(waves(2:6:2), 6, MPI_REAL, previous, 5, comm, requests(1))
  call MPI_Send_init(waves(5:1:-2), 6, MPI_REAL, next, 5, comm, requests(2))
  call MPI_Startall(2, requests)
  call MPI_Waitall(2, requests, statuses)
  call check(all(waves(1:5:2) == [(cmplx(rank, i), i = 1, 5, 2)]), 'halves are sent')
  call check(all(waves(2:6:2) == [(cmplx(previous, i), i = 5, 1, -2)]), 'halves')
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))
  handled = MPI_SUCCESS
  call MPI_Isend(grid(1:6:2, 1:6:2), 1, vector, next, 6, comm, requests(1), err)
  call check(handled == MPI_ERR_TYPE .and. err /= MPI_SUCCESS, 'a type with gaps in a section')
  call MPI_Isend(grid(1:6:2, 1:6:2), 10, MPI_INTEGER, next, 6, comm, requests(1), err)
  call check(err /= MPI_SUCCESS, 'more than a section')
  call MPI_Type_free(vector)

  ! Attributes that C reads and sets.
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(comm, keyval, -77_MPI_ADDRESS_KIND)
  call check(seen_from_c(comm%MPI_VAL, keyval, -77_c_intptr_t) == 0, 'seen from C')
  call MPI_Comm_get_attr(comm, keyval, value, flag)
  call check(flag .and. value == 4096, 'set by C')
  statuses(1)%MPI_TAG = 1
  n = status_seen_from_c(statuses(1), 1)
  call check(n == 0 .and. statuses(1)%MPI_SOURCE == previous .and. statuses(1)%MPI_TAG == 5, 'statuses in C')
  call check(ignored_in_c(MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE) == 0, 'no status in C')

  ! What is left out, and what is the library's own.
  call MPI_Dist_graph_create_adjacent(comm, 1, [previous], MPI_UNWEIGHTED, 1, [next], MPI_UNWEIGHTED, MPI_INFO_NULL, &
                                      .false., comm)
  call MPI_Neighbor_alltoallw([rank], [1], [0_MPI_ADDRESS_KIND], [MPI_INTEGER], got, [1], [0_MPI_ADDRESS_KIND], &
                              [MPI_INTEGER], comm)
  call check(got(1) == previous, 'neighbours')
  call MPI_Buffer_attach(buffer, 800)
  call MPI_Buffer_detach(detached, n)
  call check(n == 800 .and. c_associated(detached, c_loc_of(buffer)), 'detached buffer')
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'a', '1')
  call MPI_Info_get_nkeys(info, n)
  call check(n == 1, 'info')
  call MPI_Info_free(info)
  call MPI_Sizeof(grid, n)
  call check(n == 4, 'bytes of an element')
  call kept_over_a_wait()
  call changed_by_a_request()

  i = 0
  call PMPI_Allreduce(1, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(i == size, 'names for tools')
  if (rank == 0) print '(a)', 'ok'
  call MPI_Finalize()
contains
  ! What arrives while nobody looks is not what the compiler has kept in a register.
  subroutine kept_over_a_wait()
    integer, asynchronous :: here
    type(MPI_Request) :: request
    here = -1
    call MPI_Irecv(here, 1, MPI_INTEGER, previous, 3, MPI_COMM_WORLD, request)
    call MPI_Send(rank, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(here == previous, 'kept over a wait')
  end subroutine

  ! The state of a generalized request is the variable that was passed, which the compiler must not keep in a register.
  subroutine changed_by_a_request()
    integer(kind=MPI_ADDRESS_KIND) :: state
    type(MPI_Request) :: request
    state = 3
    call MPI_Grequest_start(asked, released, cancelled, state, request)
    state = 4
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call MPI_Get_count(status, MPI_INTEGER, n)
    call check(n == 4 .and. state == 5, 'changed by a request')
  end subroutine

  type(c_ptr) function c_loc_of(array)
    integer, target :: array(*)
    c_loc_of = c_loc(array)
  end function

  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    print *, 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
