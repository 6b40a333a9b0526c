package dev.fieldmesh.core.agent

import dev.fieldmesh.core.wire.Attachment
import dev.fieldmesh.core.wire.AttachmentHeld
import dev.fieldmesh.core.wire.AttachmentPut
import dev.fieldmesh.core.wire.WireJson
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import java.io.File
import java.io.IOException
import java.io.RandomAccessFile
import java.nio.channels.FileChannel
import java.nio.file.Files
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.StandardOpenOption.READ
import java.nio.file.StandardOpenOption.WRITE
import java.security.MessageDigest
import java.util.Base64

/** Where the files of notes go, and their notes where those are not known. */
interface AttachmentSink : NoteSink {
    suspend fun attachment(sha256: String): AttachmentHeld
    suspend fun putAttachment(piece: AttachmentPut): AttachmentHeld
}

/** How many files the node does not have yet, and what hinders that. */
data class AttachmentsWaiting(
    val count: Int = 0,
    val nodeIsFull: Boolean = false,
    /** Its agent does not know that notes have files. */
    val nodeIsOld: Boolean = false,
    /** How many were refused too often, and are not tried again by this process. */
    val refused: Int = 0,
)

/** A photo or recording, with its note, which names the file once that is ready to be delivered. */
@Serializable
data class Taken(val noted: WaitingNote, @SerialName("media_type") val mediaType: String) {
    val id: String get() = noted.note.id
    val isReady: Boolean get() = noted.note.attachment != null
}

/** A file that will never be what a note can have with it. */
class UnusableException(message: String) : IOException(message)

/**
 * Photos and recordings, from before the camera or the recorder begins until the node has all of their bytes. Each is
 * a file in [folder], named by its note's id, with the note beside it as JSON; what is still being written is beside
 * them, too. Every step is on the disk before the next, so that each can be taken up by another process. Calls may come
 * from any thread.
 */
class Attachments(private val folder: File) {
    private val told = MutableStateFlow(AttachmentsWaiting(ready().size))
    private val woken = Channel<Unit>(Channel.CONFLATED)

    val waiting: StateFlow<AttachmentsWaiting> = told.asStateFlow()

    /** What has no file yet, or one that is to be made [ready] still. */
    fun unready(): List<Taken> = all().filter { !it.isReady }

    fun file(of: Taken) = File(folder, of.id)

    /** Where the file is written until it is whole. */
    fun part(of: Taken) = File(folder, of.id + PART)

    /** Keeps the note of a file that is about to be made. */
    @Throws(IOException::class)
    fun begin(taken: Taken) {
        folder.mkdirs()
        val new = File(folder, taken.id + NEW)
        new.writeText(WireJson.encodeToString(Taken.serializer(), taken))
        settle(new, note(taken))
    }

    /** What is in [part] is the whole file. */
    @Throws(IOException::class)
    fun close(taken: Taken) = settle(part(taken), file(taken))

    /** Has a file delivered; its note, which names it. */
    @Throws(IOException::class)
    fun ready(taken: Taken): WaitingNote {
        val file = file(taken)
        val bytes = file.length()
        if (bytes !in 1..MOST_BYTES) throw UnusableException("$bytes bytes are not within 1 to $MOST_BYTES")
        val named = taken.noted.note.copy(attachment = Attachment(taken.mediaType, bytes.toInt(), sha256(file)))
        val ready = taken.copy(noted = taken.noted.copy(note = named))
        begin(ready)
        recount()
        woken.trySend(Unit)
        return ready.noted
    }

    /** The note goes last: a file without one is nobody's. */
    fun discard(taken: Taken) {
        listOf(part(taken), file(taken), note(taken)).forEach(File::delete)
        recount()
    }

    /** Deletes what a process that ended has left unfinished; what has one of the [busy] ids is being written. */
    fun sweep(busy: Set<String>) = folder.listFiles().orEmpty().forEach {
        val id = it.name.substringBefore('.')
        val isUnfinished = it.name.endsWith(PART) || it.name.endsWith(NEW)
        if (id !in busy && (isUnfinished || !File(folder, id + NOTE).exists())) it.delete()
    }

    /**
     * Gives the node what waits, the oldest first, for as long as it is not cancelled: nothing while [isMeasured], by
     * what the app knows; what it does not know yet, the node refuses. A file that is refused too often is set aside.
     */
    suspend fun deliver(sink: AttachmentSink, clocks: Clocks, isMeasured: () -> Boolean) {
        val delivery = Delivery(sink, clocks, isMeasured)
        told.value = AttachmentsWaiting(ready().size) // what another node has said is not this one's
        while (true) {
            delivery.round()
            val isIdle = told.value.run { nodeIsOld || count == refused }
            withTimeoutOrNull(if (isIdle) IDLE_MS else RETRY_MS) { woken.receive() }
        }
    }

    private inner class Delivery(
        private val sink: AttachmentSink,
        private val clocks: Clocks,
        private val isMeasured: () -> Boolean,
    ) {
        private val refusals = mutableMapOf<String, Int>()

        private fun isSetAside(taken: Taken) = (refusals[taken.id] ?: 0) >= MOST_REFUSALS

        /** Sends all, until something hinders that of which no file is the cause. */
        suspend fun round() {
            for (taken in ready().filterNot(::isSetAside)) {
                if (isMeasured()) return
                try {
                    send(taken)
                } catch (e: IOException) {
                    if (hinders(e)) return
                    refusals.merge(taken.id, 1, Int::plus)
                }
            }
            val left = ready()
            told.value = AttachmentsWaiting(left.size, refused = left.count(::isSetAside))
        }

        /** Whether no other file would fare better. */
        private fun hinders(e: IOException): Boolean = when {
            e is AgentException.Refused && e.isOfOlderNode -> true.also { told.update { it.copy(nodeIsOld = true) } }
            e is AgentException.Refused && e.error.code == "disk_full" ->
                true.also { told.update { it.copy(nodeIsFull = true) } }
            e is AgentException.Refused -> e.error.code in LATER
            else -> e is AgentException && e !is AgentException.BadAnswer
        }

        private suspend fun send(taken: Taken) {
            var held = known(taken)
            var begins = 0
            while (!held.archived && held.heldBytes < held.bytes) {
                if (isMeasured()) return
                if (held.heldBytes == 0 && begins++ == 2) throw IOException("${taken.id} comes damaged")
                held = sink.putAttachment(AttachmentPut(held.sha256, held.heldBytes, piece(taken, held.heldBytes)))
            }
            discard(taken)
        }

        /** What the node has of a file. Its note may have gone to another node, or nowhere yet. */
        private suspend fun known(taken: Taken): AttachmentHeld {
            val sha256 = checkNotNull(taken.noted.note.attachment).sha256
            return try {
                sink.attachment(sha256)
            } catch (e: AgentException.Refused) {
                if (e.error.code != "not_found") throw e
                sink.give(taken.noted, clocks)
                sink.attachment(sha256)
            }.copy(sha256 = sha256)
        }
    }

    private fun piece(taken: Taken, offset: Int): String = RandomAccessFile(file(taken), "r").use {
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

    private fun note(of: Taken) = File(folder, of.id + NOTE)

    /** Gives a file its name, durably. */
    private fun settle(from: File, to: File) {
        FileChannel.open(from.toPath(), WRITE).use { it.force(true) }
        Files.move(from.toPath(), to.toPath(), ATOMIC_MOVE)
        FileChannel.open(folder.toPath(), READ).use { it.force(true) }
    }

    private fun ready(): List<Taken> = all().filter { it.isReady }

    private fun all(): List<Taken> = folder.listFiles { f -> f.name.endsWith(NOTE) }.orEmpty()
        .sortedWith(compareBy(File::lastModified, File::getName)).mapNotNull(::read)

    private fun read(note: File): Taken? = try {
        WireJson.decodeFromString(Taken.serializer(), note.readText())
    } catch (_: SerializationException) {
        null
    } catch (_: IOException) {
        null // delivered meanwhile
    }

    private fun recount() = told.update {
        val count = ready().size
        it.copy(count = count, nodeIsFull = it.nodeIsFull && count > 0, nodeIsOld = it.nodeIsOld && count > 0)
    }

    companion object {
        /** `wire.MaxAttachment`. */
        const val MOST_BYTES = 2L shl 20

        /** `wire.AttachmentPiece`. */
        private const val PIECE_BYTES = 48L shl 10
        private const val NOTE = ".json"
        private const val PART = ".part"
        private const val NEW = ".new"
        private const val IDLE_MS = 60_000L
        private const val RETRY_MS = 5000L
        private const val MOST_REFUSALS = 5

        /** Refusals that are of the node's moment. */
        private val LATER = setOf("busy", "unavailable")
    }
}
