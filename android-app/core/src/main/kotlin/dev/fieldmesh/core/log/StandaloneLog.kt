package dev.fieldmesh.core.log

import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.gps.GAP_MS
import dev.fieldmesh.core.wire.Body
import dev.fieldmesh.core.wire.Event
import dev.fieldmesh.core.wire.Header
import dev.fieldmesh.core.wire.Record
import java.io.Closeable
import java.io.File
import java.io.FileOutputStream
import java.util.Locale.ROOT

/**
 * Records kept on the phone when there is no agent, one JSON object a line, in
 * the schema of a node's spool: (node, epoch, seq) names a record, the epoch is
 * this log's own. A line is on the disk after [sync]. Not safe for several threads.
 */
class StandaloneLog(file: File, private val node: String, private val epoch: String) : Closeable {
    private val stream = FileOutputStream(file, true)
    private val writer = stream.bufferedWriter()
    private var seq = 0L
    private var lost = false
    private var fixNs: Long? = null // when the last fix was; absent when something was told since

    fun add(bootNs: Long, body: Body) {
        if (body is Event) fixNs = null
        val header = Header(kind = body.kind, node = node, epoch = epoch, seq = ++seq, tBootNs = bootNs)
        writer.write(Record(header, body).encode())
        writer.newLine()
    }

    /** A fix, or the loss of it: a gap has its beginning, its end and its cause in words too. */
    fun add(fix: Fix) {
        val silentNs = fixNs?.let { fix.bootNs - it } ?: 0
        // While the app runs, a receiver that is silent makes a fix without a position every GAP_MS.
        if (silentNs > SLEPT_NS) {
            add(
                fix.bootNs,
                Event("warning", "GPS: nothing for %.1f s, the app did not run".format(ROOT, silentNs / 1e9)),
            )
        }
        if (fix.hasPosition == lost) {
            lost = !fix.hasPosition
            add(fix.bootNs, Event(if (lost) "warning" else "info", if (lost) "GPS: no fix" else "GPS: a fix again"))
        }
        add(fix.bootNs, fix.toGps())
        fixNs = fix.bootNs
    }

    fun sync() {
        writer.flush()
        stream.fd.sync()
    }

    override fun close() {
        try {
            sync()
        } finally {
            writer.close()
        }
    }

    private companion object {
        /** A fix may be told a second late. */
        const val SLEPT_NS = (GAP_MS + 1000) * 1_000_000
    }
}
