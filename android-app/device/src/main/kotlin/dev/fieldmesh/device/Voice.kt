package dev.fieldmesh.device

import android.content.Context
import android.media.AudioAttributes
import android.media.AudioFocusRequest
import android.media.AudioManager
import android.os.VibrationEffect
import android.os.Vibrator
import android.speech.tts.TextToSpeech
import android.speech.tts.UtteranceProgressListener
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.cue.Cue
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import java.util.Locale

/** Gives a cue to the driver, in the state that it is about. */
fun interface Voice {
    fun say(cue: Cue, state: AppState)
}

/** Whether the phone can speak the app's language. */
enum class VoiceState { STARTING, READY, NO_ENGINE, NO_LANGUAGE }

/**
 * Speaks cues and makes the phone shake, with the screen off too; other sound is lowered meanwhile. [words] are in
 * [language], whatever the engine's is, and change with it; null: there is nothing to say.
 */
class SpokenVoice(
    private val context: Context,
    private val language: () -> Locale,
    private val wanted: () -> Boolean,
    private val words: (Cue, AppState) -> String?,
) : Voice,
    AutoCloseable {
    private val vibrator: Vibrator? = context.getSystemService(Vibrator::class.java)
    private val audio = context.getSystemService(AudioManager::class.java)
    private val told = MutableStateFlow(VoiceState.STARTING)
    private var settled: Locale? = null // what the engine was told to speak; absent until it has started
    private var speech = TextToSpeech(context, ::started)
    private val manner = AudioAttributes.Builder()
        .setUsage(AudioAttributes.USAGE_ASSISTANCE_NAVIGATION_GUIDANCE)
        .setContentType(AudioAttributes.CONTENT_TYPE_SPEECH)
        .build()
    private val focus = AudioFocusRequest.Builder(AudioManager.AUDIOFOCUS_GAIN_TRANSIENT_MAY_DUCK)
        .setAudioAttributes(manner)
        .build()

    val state: StateFlow<VoiceState> = told.asStateFlow()

    private fun started(status: Int) {
        if (status != TextToSpeech.SUCCESS) {
            told.value = VoiceState.NO_ENGINE
            return
        }
        speech.setAudioAttributes(manner)
        speech.setOnUtteranceProgressListener(Ends())
        settle(language())
    }

    /** Asks again for what was missing: a person may have installed an engine, or a language, or chosen another. */
    fun tryAgain() {
        if (told.value !in MISSING) return
        told.value = VoiceState.STARTING
        settled = null
        speech.shutdown()
        speech = TextToSpeech(context, ::started)
    }

    private fun settle(newest: Locale) {
        settled = newest
        val has = speech.setLanguage(newest) >= TextToSpeech.LANG_AVAILABLE
        told.value = if (has) VoiceState.READY else VoiceState.NO_LANGUAGE
    }

    override fun say(cue: Cue, state: AppState) {
        val text = words(cue, state) ?: return
        vibrator?.vibrate(VibrationEffect.createWaveform(pattern(cue), NO_REPEAT))
        if (settled != null && settled != language()) settle(language())
        if (told.value != VoiceState.READY || !wanted()) return
        audio.requestAudioFocus(focus)
        // An older cue that is still being spoken is of no use any more.
        speech.speak(text, TextToSpeech.QUEUE_FLUSH, null, cue.name)
    }

    override fun close() {
        audio.abandonAudioFocusRequest(focus)
        speech.shutdown()
    }

    /** Gives other sound its place back when nothing is spoken any more. */
    private inner class Ends : UtteranceProgressListener() {
        override fun onStart(id: String?) = Unit

        override fun onDone(id: String?) = over()

        @Deprecated("Android still wants it")
        override fun onError(id: String?) = over()

        override fun onError(id: String?, code: Int) = over()

        private fun over() {
            if (!speech.isSpeaking) audio.abandonAudioFocusRequest(focus)
        }
    }

    /** Milliseconds off, on, off, on …: one for faster, two for slower, long ones for what happened. */
    private fun pattern(cue: Cue): LongArray = when (cue) {
        Cue.FASTER -> longArrayOf(0, 120)
        Cue.SLOWER -> longArrayOf(0, 120, 120, 120)
        Cue.HOLD, Cue.DISTANCE, Cue.COUNTDOWN -> longArrayOf(0, 40)
        Cue.GO -> longArrayOf(0, 500)
        Cue.DONE -> longArrayOf(0, 500, 200, 500)
        else -> longArrayOf(0, 200, 100, 200, 100, 200)
    }

    private companion object {
        const val NO_REPEAT = -1
        val MISSING = setOf(VoiceState.NO_ENGINE, VoiceState.NO_LANGUAGE)
    }
}
