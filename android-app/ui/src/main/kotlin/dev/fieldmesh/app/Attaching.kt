package dev.fieldmesh.app

import dev.fieldmesh.core.agent.Attachments
import dev.fieldmesh.core.agent.Taken
import dev.fieldmesh.core.agent.UnusableException
import dev.fieldmesh.core.agent.WaitingNote
import dev.fieldmesh.device.Recorder
import dev.fieldmesh.device.Session
import dev.fieldmesh.device.TakenPhoto
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.receiveAsFlow
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import java.io.IOException

/** Why a photo or recording could not be made ready; what is kept is tried again. */
class AttachFault(val why: IOException, val isKept: Boolean)

/**
 * Photos and recordings, from the touch of their button until the session has them. A note is of the moment of that
 * touch. What a process that ended has left is taken up by the next. All calls are the main thread's.
 */
class Attaching(
    private val scope: CoroutineScope,
    private val worker: CoroutineDispatcher,
    private val recorder: Recorder,
    private val attachments: Attachments,
    private val session: () -> Session,
) {
    private val failed = Channel<AttachFault>(Channel.UNLIMITED)
    private val came = Channel<String>(Channel.UNLIMITED)

    /** Each is told once. */
    val faults: Flow<AttachFault> = failed.receiveAsFlow()

    /** The words of each note whose file was taken: they are needed no more. */
    val used: Flow<String> = came.receiveAsFlow()

    /** The id of what the camera app was asked for last; null: it has answered. */
    var asked: String? = null

    /** The ids of what is being made here. */
    private val busy = mutableSetOf<String>()

    /** What the camera app is to be asked for; null where it could not be kept. */
    fun beginPhoto(text: String): Taken? = begin(text, TakenPhoto.MEDIA_TYPE)?.also { asked = it.id }

    private fun begin(text: String, mediaType: String): Taken? = try {
        Taken(session().begin(text), mediaType).also(attachments::begin)
    } catch (e: IOException) {
        lost(e)
        null
    }

    /** There will be no photo. */
    fun noPhoto() {
        attachments.unready().find { it.id == asked }?.let(attachments::discard)
        asked = null
    }

    /** Keeps the photo that the camera app has written. */
    fun takePhoto() {
        val written = attachments.unready().find { it.id == asked }?.let(attachments::file)
        if (written?.length() == 0L) lost(IOException("the camera app wrote no photo"))
        asked = null
        takeUp()
    }

    /** Resumes what has been taken: also by a process that has ended since, or what failed before. */
    fun takeUp() {
        val now = busy + setOfNotNull(asked)
        for (taken in attachments.unready().filter { it.id !in now }) {
            if (attachments.file(taken).length() == 0L) attachments.discard(taken) else keep(taken)
        }
        attachments.sweep(now + busy)
    }

    private class Recording(val taken: Taken, val counting: Job)

    private var recording: Recording? = null
    private val seconds = MutableStateFlow<Int?>(null)

    /** For how long speech is being recorded; null while it is not. */
    val recordedS: StateFlow<Int?> = seconds.asStateFlow()

    /** The button begins a recording, and ends it; a minute ends it, too. */
    fun toggleVoice(text: String) {
        if (recording != null) return endVoice()
        val taken = begin(text, Recorder.MEDIA_TYPE) ?: return
        try {
            recorder.begin(attachments.part(taken), ::endVoice)
        } catch (e: IOException) {
            return lost(e, taken)
        }
        busy += taken.id
        seconds.value = 0
        val counting = scope.launch {
            for (s in 1..MOST_S) {
                delay(SECOND_MS)
                seconds.value = s
            }
            endVoice()
        }
        recording = Recording(taken, counting)
    }

    /** Ends a recording, and keeps it. */
    fun endVoice() {
        val ended = recording ?: return
        recording = null
        busy -= ended.taken.id
        ended.counting.cancel()
        seconds.value = null
        try {
            if (!recorder.end()) throw IOException("nothing was recorded")
            attachments.close(ended.taken)
        } catch (e: IOException) {
            return lost(e, ended.taken)
        }
        keep(ended.taken)
    }

    private fun keep(taken: Taken) {
        busy += taken.id
        came.trySend(taken.noted.note.text)
        scope.launch {
            try {
                session().attached(withContext(worker) { ready(taken) })
            } catch (e: UnusableException) {
                lost(e, taken)
            } catch (e: IOException) {
                attachments.part(taken).delete() // a full storage has no room for half a file
                failed.trySend(AttachFault(e, isKept = true))
            } finally {
                busy -= taken.id
            }
        }
    }

    private fun ready(taken: Taken): WaitingNote {
        if (taken.mediaType == TakenPhoto.MEDIA_TYPE) {
            TakenPhoto.scale(attachments.file(taken), attachments.part(taken))
            attachments.close(taken)
        }
        return attachments.ready(taken)
    }

    private fun lost(why: IOException, taken: Taken? = null) {
        taken?.let(attachments::discard)
        failed.trySend(AttachFault(why, isKept = false))
    }

    private companion object {
        const val SECOND_MS = 1000L
        const val MOST_S = 60
    }
}
