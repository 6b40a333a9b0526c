package dev.fieldmesh.app

import dev.fieldmesh.core.agent.Attachments
import dev.fieldmesh.core.agent.Shelf
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
import java.io.File
import java.io.IOException

/**
 * Photos and recordings, from the touch of their button until the session has them: as long as the process lives, and
 * a photo also when it ends while the camera app is in front. A note is of the moment of that touch. All calls are the
 * main thread's.
 */
class Attaching(
    private val scope: CoroutineScope,
    private val worker: CoroutineDispatcher,
    /** What the camera app writes. */
    private val photo: File,
    /** The note that the photo belongs to; empty for none. */
    private val begun: Shelf,
    private val recorder: Recorder,
    private val attachments: Attachments,
    private val session: () -> Session,
) {
    private val failed = Channel<IOException>(Channel.UNLIMITED)

    /** Photos and recordings that could not be kept; each is told once. */
    val faults: Flow<IOException> = failed.receiveAsFlow()

    private var asked = false
    private var keeping = false

    /** The camera app is about to be asked. */
    fun beginPhoto(text: String) {
        asked = true
        photo.delete()
        begun.save(session().begin(text))
    }

    /** There will be no photo. */
    fun noPhoto() {
        asked = false
        begun.save("")
        photo.delete()
    }

    /** Keeps the photo that the camera app wrote for a process that has ended since, if there is one. */
    fun takeUp() {
        if (!asked) takePhoto()
    }

    /** Keeps the photo that the camera app has written. */
    fun takePhoto() {
        asked = false
        val note = begun.load().orEmpty()
        if (note.isEmpty() || photo.length() == 0L || keeping) return
        keeping = true
        scope.launch {
            val scaled = File(photo.path + ".scaled")
            keep(note, TakenPhoto.MEDIA_TYPE, scaled) { TakenPhoto.scale(photo, scaled) }
            noPhoto()
            keeping = false
        }
    }

    private class Recording(val note: String, val counting: Job)

    private val speech = File(photo.parentFile, "speech.m4a")
    private var recording: Recording? = null
    private val seconds = MutableStateFlow<Int?>(null)

    /** For how long speech is being recorded; null while it is not. */
    val recordedS: StateFlow<Int?> = seconds.asStateFlow()

    /** The button begins a recording, and ends it; a minute ends it, too. */
    fun toggleVoice(text: String) {
        if (recording != null) return endVoice()
        try {
            speech.parentFile?.mkdirs()
            recorder.begin(speech, ::endVoice)
        } catch (e: IOException) {
            failed.trySend(e)
            return
        }
        seconds.value = 0
        val counting = scope.launch {
            for (s in 1..MOST_S) {
                delay(SECOND_MS)
                seconds.value = s
            }
            endVoice()
        }
        recording = Recording(session().begin(text), counting)
    }

    /** Ends a recording, and keeps it. */
    fun endVoice() {
        val ended = recording ?: return
        recording = null
        ended.counting.cancel()
        seconds.value = null
        if (!recorder.end()) {
            failed.trySend(IOException("nothing was recorded"))
            return
        }
        // Another one may begin before this one is kept.
        val kept = File(speech.path + ".${System.nanoTime()}")
        speech.renameTo(kept)
        scope.launch { keep(ended.note, Recorder.MEDIA_TYPE, kept) {} }
    }

    private suspend fun keep(note: String, mediaType: String, file: File, make: () -> Unit) {
        try {
            val attachment = withContext(worker) {
                make()
                attachments.add(file, mediaType)
            }
            session().attached(note, attachment)
        } catch (e: IOException) {
            failed.trySend(e)
        } finally {
            file.delete()
        }
    }

    private companion object {
        const val SECOND_MS = 1000L
        const val MOST_S = 60
    }
}
