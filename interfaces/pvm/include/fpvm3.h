! PVM 3.4 over Weft, for Fortran in fixed and in free form.

! What calls answer (info).
      integer PvmOk, PvmBadParam, PvmMismatch, PvmOverflow, PvmNoData
      integer PvmNoHost, PvmNoFile, PvmDenied, PvmNoMem, PvmBadMsg
      integer PvmSysErr, PvmNoBuf, PvmNoSuchBuf, PvmNullGroup
      integer PvmDupGroup, PvmNoGroup, PvmNotInGroup, PvmNoInst
      integer PvmHostFail, PvmNoParent, PvmNotImpl, PvmDSysErr
      integer PvmBadVersion, PvmOutOfRes, PvmDupHost, PvmCantStart
      integer PvmAlready, PvmNoTask, PvmNotFound, PvmNoEntry
      integer PvmExists, PvmDupEntry, PvmHostrNMstr, PvmParentNotSet
      integer PvmIPLoopback
      parameter (PvmOk = 0)
      parameter (PvmBadParam = -2)
      parameter (PvmMismatch = -3)
      parameter (PvmOverflow = -4)
      parameter (PvmNoData = -5)
      parameter (PvmNoHost = -6)
      parameter (PvmNoFile = -7)
      parameter (PvmDenied = -8)
      parameter (PvmNoMem = -10)
      parameter (PvmBadMsg = -12)
      parameter (PvmSysErr = -14)
      parameter (PvmNoBuf = -15)
      parameter (PvmNoSuchBuf = -16)
      parameter (PvmNullGroup = -17)
      parameter (PvmDupGroup = -18)
      parameter (PvmNoGroup = -19)
      parameter (PvmNotInGroup = -20)
      parameter (PvmNoInst = -21)
      parameter (PvmHostFail = -22)
      parameter (PvmNoParent = -23)
      parameter (PvmNotImpl = -24)
      parameter (PvmDSysErr = -25)
      parameter (PvmBadVersion = -26)
      parameter (PvmOutOfRes = -27)
      parameter (PvmDupHost = -28)
      parameter (PvmCantStart = -29)
      parameter (PvmAlready = -30)
      parameter (PvmNoTask = -31)
      parameter (PvmNotFound = -32)
      parameter (PvmNoEntry = -32)
      parameter (PvmExists = -33)
      parameter (PvmDupEntry = -33)
      parameter (PvmHostrNMstr = -34)
      parameter (PvmParentNotSet = -35)
      parameter (PvmIPLoopback = -36)

! Types of elements, for packing and reductions.
      integer STRING, BYTE1, INTEGER2, INTEGER4, REAL4, COMPLEX8
      integer REAL8, COMPLEX16, INTEGER8
      parameter (STRING = 0)
      parameter (BYTE1 = 1)
      parameter (INTEGER2 = 2)
      parameter (INTEGER4 = 3)
      parameter (REAL4 = 4)
      parameter (COMPLEX8 = 5)
      parameter (REAL8 = 6)
      parameter (COMPLEX16 = 7)
      parameter (INTEGER8 = 8)

! How messages are written.
      integer PVMDATADEFAULT, PVMDATARAW, PVMDATAINPLACE, PVMDATATRACE
      integer PVMDEFAULT, PVMRAW, PVMINPLACE
      parameter (PVMDATADEFAULT = 0)
      parameter (PVMDATARAW = 1)
      parameter (PVMDATAINPLACE = 2)
      parameter (PVMDATATRACE = 4)
      parameter (PVMDEFAULT = 0)
      parameter (PVMRAW = 1)
      parameter (PVMINPLACE = 2)

! Where tasks are started.
      integer PVMTASKDEFAULT, PVMTASKHOST, PVMTASKARCH, PVMTASKDEBUG
      integer PVMTASKTRACE, PVMMPPFRONT, PVMHOSTCOMPL
      integer PVMNOSPAWNPARENT, PVMHOST, PVMARCH, PVMDEBUG, PVMTRACE
      parameter (PVMTASKDEFAULT = 0)
      parameter (PVMTASKHOST = 1)
      parameter (PVMTASKARCH = 2)
      parameter (PVMTASKDEBUG = 4)
      parameter (PVMTASKTRACE = 8)
      parameter (PVMMPPFRONT = 16)
      parameter (PVMHOSTCOMPL = 32)
      parameter (PVMNOSPAWNPARENT = 64)
      parameter (PVMHOST = 1)
      parameter (PVMARCH = 2)
      parameter (PVMDEBUG = 4)
      parameter (PVMTRACE = 8)

! What a task is told of.
      integer PVMTASKEXIT, PVMHOSTDELETE, PVMHOSTADD, PVMROUTEADD
      integer PVMROUTEDELETE, PVMNOTIFYCANCEL
      parameter (PVMTASKEXIT = 1)
      parameter (PVMHOSTDELETE = 2)
      parameter (PVMHOSTADD = 3)
      parameter (PVMROUTEADD = 4)
      parameter (PVMROUTEDELETE = 5)
      parameter (PVMNOTIFYCANCEL = 256)

! The mailbox.
      integer PVMMBOXDEFAULT, PVMMBOXPERSISTENT, PVMMBOXMULTIINSTANCE
      integer PVMMBOXOVERWRITABLE, PVMMBOXFIRSTAVAIL
      integer PVMMBOXREADANDDELETE, PVMMBOXWAITFORINFO
      parameter (PVMMBOXDEFAULT = 0)
      parameter (PVMMBOXPERSISTENT = 1)
      parameter (PVMMBOXMULTIINSTANCE = 2)
      parameter (PVMMBOXOVERWRITABLE = 4)
      parameter (PVMMBOXFIRSTAVAIL = 8)
      parameter (PVMMBOXREADANDDELETE = 16)
      parameter (PVMMBOXWAITFORINFO = 32)

! Options, each followed by its values.
      integer PVMROUTE, PVMDONTROUTE, PVMALLOWDIRECT, PVMROUTEDIRECT
      integer PVMDEBUGMASK, PVMAUTOERR, PVMOUTPUTTID, PVMOUTPUTCODE
      integer PVMTRACETID, PVMTRACECODE, PVMTRACEBUFFER
      integer PVMTRACEOPTIONS, PVMTRACEFULL, PVMTRACETIME
      integer PVMTRACECOUNT, PVMFRAGSIZE, PVMRESVTIDS, PVMSOUTPUTTID
      integer PVMSOUTPUTCODE, PVMSTRACETID, PVMSTRACECODE
      integer PVMSTRACEBUFFER, PVMSTRACEOPTIONS, PVMSHOWTIDS
      integer PVMPOLLTYPE, PVMPOLLCONSTANT, PVMPOLLSLEEP, PVMPOLLTIME
      integer PVMOUTPUTCTX, PVMTRACECTX, PVMSOUTPUTCTX, PVMSTRACECTX
      integer PVMNORESET
      parameter (PVMROUTE = 1)
      parameter (PVMDONTROUTE = 1)
      parameter (PVMALLOWDIRECT = 2)
      parameter (PVMROUTEDIRECT = 3)
      parameter (PVMDEBUGMASK = 2)
      parameter (PVMAUTOERR = 3)
      parameter (PVMOUTPUTTID = 4)
      parameter (PVMOUTPUTCODE = 5)
      parameter (PVMTRACETID = 6)
      parameter (PVMTRACECODE = 7)
      parameter (PVMTRACEBUFFER = 8)
      parameter (PVMTRACEOPTIONS = 9)
      parameter (PVMTRACEFULL = 1)
      parameter (PVMTRACETIME = 2)
      parameter (PVMTRACECOUNT = 3)
      parameter (PVMFRAGSIZE = 10)
      parameter (PVMRESVTIDS = 11)
      parameter (PVMSOUTPUTTID = 12)
      parameter (PVMSOUTPUTCODE = 13)
      parameter (PVMSTRACETID = 14)
      parameter (PVMSTRACECODE = 15)
      parameter (PVMSTRACEBUFFER = 16)
      parameter (PVMSTRACEOPTIONS = 17)
      parameter (PVMSHOWTIDS = 18)
      parameter (PVMPOLLTYPE = 19)
      parameter (PVMPOLLCONSTANT = 1)
      parameter (PVMPOLLSLEEP = 2)
      parameter (PVMPOLLTIME = 20)
      parameter (PVMOUTPUTCTX = 21)
      parameter (PVMTRACECTX = 22)
      parameter (PVMSOUTPUTCTX = 23)
      parameter (PVMSTRACECTX = 24)
      parameter (PVMNORESET = 25)
