package dev.fieldmesh.core.agent

import dev.fieldmesh.core.wire.Attachment
import dev.fieldmesh.core.wire.AttachmentHeld
import dev.fieldmesh.core.wire.AttachmentPut
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.withTimeoutOrNull
import java.io.File
import java.io.IOException
import java.io.RandomAccessFile
import java.security.MessageDigest
import java.util.Base64

/** Where the files of notes go. */
interface AttachmentSink {
    suspend fun attachment(sha256: String): AttachmentHeld
    suspend fun putAttachment(piece: AttachmentPut): AttachmentHeld
}

/** How many files the node does not have yet, and whether it has no room for them. */
data class AttachmentsWaiting(val count: Int = 0, val nodeIsFull: Boolean = false)

/**
 * Photos and recordings on their way to the node. A file is in [folder], under the SHA-256 of its bytes, until the
 * node has all of them; what the node has of it when a connection breaks, or this process ends, is not sent again.
 * Calls of [add] and [deliver] may come from any thread.
 */
class Attachments(private val folder: File) {
    private val told = MutableStateFlow(AttachmentsWaiting(files().size))
    private val woken = Channel<Unit>(Channel.CONFLATED)

    val waiting: StateFlow<AttachmentsWaiting> = told.asStateFlow()

    /** Takes a file, which has to be of this folder's file system. */
    @Throws(IOException::class)
    fun add(file: File, mediaType: String): Attachment {
        val bytes = file.length()
        if (bytes !in 1..MOST_BYTES) throw IOException("a file of $bytes bytes is not within 1 to $MOST_BYTES")
        folder.mkdirs()
        val attachment = Attachment(mediaType, bytes.toInt(), sha256(file))
        RandomAccessFile(file, "rw").use { it.fd.sync() }
        if (!file.renameTo(File(folder, attachment.sha256))) throw IOException("keep $file in $folder")
        tell(nodeIsFull = false)
        woken.trySend(Unit)
        return attachment
    }

    /**
     * Gives the node what waits, the oldest first, for as long as it is not cancelled: nothing while [isMeasured], by
     * what the app knows; what it does not know yet, the node refuses.
     */
    suspend fun deliver(sink: AttachmentSink, isMeasured: () -> Boolean) {
        while (true) {
            tell(nodeIsFull = if (isMeasured()) told.value.nodeIsFull else isFull(sink, isMeasured))
            withTimeoutOrNull(if (told.value.count == 0) IDLE_MS else RETRY_MS) { woken.receive() }
        }
    }

    /** Sends all, until something hinders that; whether it is that the node is full. */
    private suspend fun isFull(sink: AttachmentSink, isMeasured: () -> Boolean): Boolean = try {
        files().forEach { send(it, sink, isMeasured) }
        false
    } catch (e: AgentException.Refused) {
        e.error.code == "disk_full"
    } catch (_: IOException) {
        told.value.nodeIsFull // no way to the node; or the phone's storage fails, and the file stays where it is
    }

    private suspend fun send(file: File, sink: AttachmentSink, isMeasured: () -> Boolean) {
        var held = try {
            sink.attachment(file.name)
        } catch (e: AgentException.Refused) {
            // Its note has not arrived, or did so at another node: the files behind it do not wait for that.
            if (e.error.code == "not_found") return
            throw e
        }
        var begins = 0
        while (!held.archived && held.heldBytes < held.bytes) {
            if (isMeasured()) return
            // Twice damaged on its way, or here: another time.
            if (held.heldBytes == 0 && begins++ == 2) return
            held = sink.putAttachment(AttachmentPut(file.name, held.heldBytes, piece(file, held.heldBytes)))
        }
        file.delete()
        tell(nodeIsFull = false)
    }

    private fun piece(file: File, offset: Int): String = RandomAccessFile(file, "r").use {
        val bytes = ByteArray((it.length() - offset).coerceIn(0, PIECE_BYTES).toInt())
        it.seek(offset.toLong())
        it.readFully(bytes)
        Base64.getEncoder().encodeToString(bytes)
    }

    private fun sha256(file: File): String {
        val digest = MessageDigest.getInstance("SHA-256")
        file.forEachBlock { block, n -> digest.update(block, 0, n) }
        return digest.digest().joinToString("") { "%02x".format(it) }
    }

    private fun files(): List<File> =
        folder.listFiles().orEmpty().sortedWith(compareBy(File::lastModified, File::getName))

    private fun tell(nodeIsFull: Boolean) {
        val count = files().size
        told.value = AttachmentsWaiting(count, nodeIsFull && count > 0)
    }

    companion object {
        /** `wire.MaxAttachment`. */
        const val MOST_BYTES = 2L shl 20

        /** `wire.AttachmentPiece`. */
        private const val PIECE_BYTES = 48L shl 10
        private const val IDLE_MS = 60_000L
        private const val RETRY_MS = 5000L
    }
}
