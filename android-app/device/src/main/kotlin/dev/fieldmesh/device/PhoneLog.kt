package dev.fieldmesh.device

import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.log.StandaloneLog
import dev.fieldmesh.core.wire.Body
import java.io.File
import java.io.IOException
import java.io.OutputStream
import java.security.SecureRandom
import java.util.Locale

/**
 * The logs that the phone keeps by itself: one file for each time that logging
 * began, also when the process ended in between. What is written is on the disk
 * within a few seconds. Its methods may be called from any thread.
 */
class PhoneLog(private val folder: File) {
    private var log: StandaloneLog? = null
    private var addedNs = 0L

    /** The log's files, oldest first. */
    val files: List<File> get() = folder.listFiles { f ->
        f.name.endsWith(ENDING)
    }.orEmpty().sortedWith(compareBy(File::lastModified, File::getName))

    @Synchronized
    fun add(fix: Fix) {
        open().add(fix)
        syncNowAndThen(fix.bootNs)
    }

    @Synchronized
    fun add(bootNs: Long, body: Body) {
        open().add(bootNs, body)
        syncNowAndThen(bootNs)
    }

    /** Ends the file, whether or not its last lines can be written; what is added after it begins another. */
    @Synchronized
    fun end() {
        val ended = log
        log = null
        ended?.close()
    }

    /**
     * Ends the file, and writes all logs one after another, as `fieldmesh collect` takes them. Returns the files
     * that the copy has. A full storage keeps nobody from saving what is on it.
     */
    fun copyTo(out: OutputStream): List<File> {
        val ended = synchronized(this) {
            try {
                end()
            } catch (_: IOException) {
                // The file has what could be written of it.
            }
            files
        }
        val lines = out.bufferedWriter()
        // The next file begins a line, also after one whose last line was cut.
        ended.forEach { file -> file.forEachLine { lines.append(it).append('\n') } }
        lines.flush()
        return ended
    }

    /** Deletes files that a copy has; what was logged after it is in others. */
    @Synchronized
    fun delete(copied: List<File>) = copied.forEach(File::delete)

    private fun open(): StandaloneLog = log ?: run {
        folder.mkdirs()
        val epoch = ByteArray(EPOCH_BYTES).also(SecureRandom()::nextBytes).joinToString("") { "%02x".format(it) }
        // Files that were written last in the same tick of the clock go by their numbers.
        val name = "%04d-%s%s".format(Locale.ROOT, files.size + 1, epoch, ENDING)
        StandaloneLog(File(folder, name), NODE, epoch).also { log = it }
    }

    private fun syncNowAndThen(bootNs: Long) {
        if (bootNs - addedNs < SYNC_NS) return
        addedNs = bootNs
        log?.sync()
    }

    private companion object {
        const val NODE = "phone"
        const val ENDING = ".ndjson"
        const val EPOCH_BYTES = 8
        const val SYNC_NS = 2_000_000_000L
    }
}
